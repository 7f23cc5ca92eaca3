package levelwire_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
