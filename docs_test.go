package levelwire_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// link is the target of a Markdown link or picture.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// code is a fenced or inline piece of code, in which brackets are no links.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// TestDocumentsLinkToWhatExists follows every relative link of every document,
// so that a file that moves takes its readers along.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, match[1])
			}
		}
	}
}

// place is an answer in docs/where-is.md: a link to a file, and the identifier
// in it.
var place = regexp.MustCompile("\\]\\(([^)\\s]+\\.go)\\)[^`|\\n]*`([A-Za-z_.]+)`")

// TestWhereIsNamesWhatExists holds the guide for newcomers to the code: the file
// of every answer declares the identifier that the answer names.
func TestWhereIsNamesWhatExists(t *testing.T) {
	const path = "docs/where-is.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	answers := place.FindAllStringSubmatch(string(text), -1)
	if len(answers) < 20 {
		t.Errorf("%s has %d answers, want at least 20", path, len(answers))
	}
	for _, answer := range answers {
		source, err := os.ReadFile(filepath.Join("docs", answer[1]))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		name := answer[2][strings.LastIndex(answer[2], ".")+1:]
		if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |var |const |\t)` + name + `\b`).Match(source) {
			t.Errorf("%s says that %s is in %s, which does not declare it", path, answer[2], answer[1])
		}
	}
}

// TestReadmeShowsAProgramThatCompiles: the first program in Go that a reader copies is
// an example of package informer, so it builds as it stands.
func TestReadmeShowsAProgramThatCompiles(t *testing.T) {
	const path = "client/informer/example_program_test.go"
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ := strings.Cut(rest, "```\n")
	want := strings.NewReplacer("package informer_test", "package main", "func Example_program()", "func main()").Replace(string(example))
	if shown != want {
		t.Errorf("README.md does not begin with the program of %s; with package main and func main it is\n%s", path, want)
	}
}

// TestMembersOfRestConfigAreDocumented: a program that sets a member of client-go's
// configuration finds what the client does with it, of one that comes with a new version, too.
func TestMembersOfRestConfigAreDocumented(t *testing.T) {
	const path = "docs/users/connect.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Each member of rest.Config")
	for _, member := range reflect.VisibleFields(reflect.TypeFor[rest.Config]()) {
		inner := member.Type.Kind() == reflect.Struct && member.Anonymous // its members are visible themselves
		if member.IsExported() && !inner && !strings.Contains(table, "`"+member.Name+"`") {
			t.Errorf("%s does not say what happens to %s of a rest.Config", path, member.Name)
		}
	}
}

// TestPackagesOfTheClientAreNamed: the lists of packages, which go doc shows for the
// root and for the client, name each public package.
func TestPackagesOfTheClientAreNamed(t *testing.T) {
	for path, format := range map[string]string{
		"doc.go":        `(?m)^//  .* client/%s( |,|:|$)`,
		"client/doc.go": `(?m)^//   - %s `,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for dir := range packages(t) {
			name, ours := strings.CutPrefix(dir, "client/")
			if !ours || strings.HasPrefix(name, "internal/") {
				continue
			}
			if !regexp.MustCompile(fmt.Sprintf(format, name)).Match(text) {
				t.Errorf("%s does not name %s", path, dir)
			}
		}
	}
}

// command is a go test command with an expression, in a document.
var command = regexp.MustCompile("`go test ([^`]*-run [^`]*)`")

// TestFaultsAreTested: each expression of a command in docs/faults.md names a test of the packages in it.
func TestFaultsAreTested(t *testing.T) {
	const path = "docs/faults.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commands := command.FindAllStringSubmatch(string(text), -1)
	if len(commands) < 50 {
		t.Errorf("%s has %d commands, want at least 50", path, len(commands))
	}
	for _, match := range commands {
		names, expressions := testsOf(t, match[1])
		if expressions == "^$" {
			continue // only fuzzes, or measures
		}
		for expression := range strings.SplitSeq(expressions, "|") {
			wanted := regexp.MustCompile(expression)
			if !slices.ContainsFunc(names, wanted.MatchString) {
				t.Errorf("%s: go test %s: no test is called %s", path, match[1], expression)
			}
		}
	}
}

// testFunction is the declaration of a test or fuzz target.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testsOf returns the tests of the packages that a command names, and its expression.
func testsOf(t *testing.T, command string) (names []string, expressions string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(command, `\|`, "|"))
	for i, word := range words {
		if word == "-run" {
			expressions = strings.Trim(words[i+1], "'")
		}
		dir, below := strings.CutSuffix(word, "/...")
		if !strings.HasPrefix(dir, "./") {
			continue
		}
		for _, file := range testFiles(t, dir, below) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range testFunction.FindAllStringSubmatch(string(source), -1) {
				names = append(names, found[1])
			}
		}
	}
	return names, expressions
}

func testFiles(t *testing.T, dir string, below bool) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && !below && filepath.Clean(path) != filepath.Clean(dir) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
