package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed suites.yaml
var tableYAML []byte

// suite is a published test suite.
type suite struct {
	Name    string `json:"name"`
	Module  string `json:"module"`
	Version string `json:"version"`
	// Packages are patterns of the go command, relative to the module. Of what they match,
	// those packages are run whose tests link envtest.
	Packages []string `json:"packages"`
	// Beside is what the archive of the module lacks and its go.mod replaces by a folder.
	Beside []besideModule `json:"beside,omitempty"`
	// Tags and Environment are what the project's Makefile gives its tests.
	Tags        string            `json:"tags,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	// LeftOut is what is not run.
	LeftOut []leftOut `json:"leftOut,omitempty"`
}

// besideModule is a module that is put into a folder, relative to that of the suite's module.
type besideModule struct {
	Folder  string `json:"folder"`
	Module  string `json:"module"`
	Version string `json:"version"`
}

// leftOut is a package that is not run, or specs of it.
type leftOut struct {
	// Package, relative to the module, as in "./pkg/controller".
	Package string `json:"package"`
	// Spec is a regular expression for a part of the text of specs of ginkgo, with that of the
	// containers around them. Test is one for the name of one Go test, as -test.skip has it, with a
	// slash before a subtest. Neither stands for the whole package.
	Spec string `json:"spec,omitempty"`
	Test string `json:"test,omitempty"`
	// Why is a sentence.
	Why string `json:"why"`
}

type table []suite

// parseTable reads a table and checks it.
func parseTable(text []byte) (table, error) {
	var t table
	if err := yaml.UnmarshalStrict(text, &t); err != nil {
		return nil, fmt.Errorf("suites.yaml: %w", err)
	}
	seen := map[string]bool{}
	for i, s := range t {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("suites.yaml: suite %d (%s): %w", i+1, s.Name, err)
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("suites.yaml: two suites are called %s", s.Name)
		}
		seen[s.Name] = true
	}
	return t, nil
}

var (
	suiteName    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	exactVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+`)
)

func (s *suite) check() error {
	switch {
	case !suiteName.MatchString(s.Name):
		return errors.New("name it with small letters, digits and hyphens")
	case s.Module == "":
		return errors.New("say which module it is")
	case !exactVersion.MatchString(s.Version):
		return fmt.Errorf("version %q is none: say which, as in v1.2.3", s.Version)
	case len(s.Packages) == 0:
		return errors.New("say which packages, as in ./pkg/... or ./controllers")
	}
	for _, pattern := range s.Packages {
		if !strings.HasPrefix(pattern, "./") {
			return fmt.Errorf("packages are relative to the module: %q does not begin with ./", pattern)
		}
	}
	for _, b := range s.Beside {
		if b.Folder == "" || path.IsAbs(b.Folder) || b.Module == "" || !exactVersion.MatchString(b.Version) {
			return fmt.Errorf("beside: a folder relative to the module, a module and a version are needed, not %+v", b)
		}
		// The copy of a suite has two folders around the module, for what lies beside it.
		if strings.HasPrefix(path.Clean(b.Folder), "../../..") {
			return fmt.Errorf("beside: %s lies too far out", b.Folder)
		}
	}
	for _, l := range s.LeftOut {
		if l.Package == "" || l.Why == "" {
			return fmt.Errorf("leftOut: a package and the reason are needed, not %+v", l)
		}
		if l.Spec != "" && l.Test != "" {
			return fmt.Errorf("leftOut: either a spec or a test, not %+v", l)
		}
		if _, err := regexp.Compile(l.Spec); err != nil {
			return fmt.Errorf("leftOut: %w", err)
		}
	}
	return nil
}

// choose returns the suites of some names, in the order of the table; no names are all suites.
func (t table) choose(names string) (table, error) {
	if names == "" {
		return t, nil
	}
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	var chosen table
	for _, s := range t {
		if slices.Contains(wanted, s.Name) {
			chosen = append(chosen, s)
			wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == s.Name })
		}
	}
	if len(wanted) > 0 || len(chosen) == 0 {
		return nil, fmt.Errorf("there is no suite %s: choose of %s", strings.Join(wanted, ", "), strings.Join(t.names(), ", "))
	}
	return chosen, nil
}

func (t table) names() (names []string) {
	for _, s := range t {
		names = append(names, s.Name)
	}
	return names
}

// withNothingLeftOut is the table without its exceptions.
func (t table) withNothingLeftOut() table {
	whole := slices.Clone(t)
	for i := range whole {
		whole[i].LeftOut = nil
	}
	return whole
}

// leavesOut returns the specs and the Go tests of a package that are not run, and whether nothing
// of it is.
func (s *suite) leavesOut(pkg string) (specs, tests []string, whole bool) {
	for _, l := range s.LeftOut {
		switch {
		case path.Clean(l.Package) != path.Clean(pkg):
		case l.Spec != "":
			specs = append(specs, l.Spec)
		case l.Test != "":
			tests = append(tests, l.Test)
		default:
			return nil, nil, true
		}
	}
	return specs, tests, false
}
