package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageSaysWhatTheResultsSay: nobody writes into the page by hand, and whoever changes the table
// writes it again.
func TestPageSaysWhatTheResultsSay(t *testing.T) {
	all, err := parseTable(tableYAML)
	if err != nil {
		t.Fatal(err)
	}
	record, err := readResults("results.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, found := range record {
		if found.Levelwire.Failed > 0 {
			t.Errorf("%d specs of %s have failed: mend it, or leave them out in suites.yaml and say why", found.Levelwire.Failed, name)
		}
	}
	text, err := os.ReadFile("../../docs/users/suites.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(all, record) {
		t.Error("docs/users/suites.md is not what suites.yaml and results.json say: run make test-suites with SUITES=NAME of a small one")
	}
}

func TestPage(t *testing.T) {
	all := table{
		{Name: "a", LeftOut: []leftOut{
			{Package: "./x", Spec: "one|two", Why: "It needs nodes."}, {Package: "./y", Why: "It needs Docker."}, {Package: "./z", Test: "TestZ/1", Why: "It fails there, too."},
		}},
		{Name: "b"}, {Name: "c"},
	}
	record := results{
		"a": {Module: "example.com/a", Version: "v1.0.0", Packages: 2, Levelwire: sideSum{counts{Passed: 1234, LeftOut: 3, Skipped: 1}, 12.34}, Real: &sideSum{counts{Passed: 1237, Failed: 1}, 1234}},
		"b": {Module: "example.com/b", Version: "v0.1.0", Packages: 1, Levelwire: sideSum{counts{Passed: 1, Failed: 1}, 1.26}},
	}
	text := page(all, record)
	for _, want := range []string{
		"| a | `example.com/a` v1.0.0 | 2 | 1238 | 1234 | 0 | 3 | 1 | 12 | 1,234, 1 failed |\n",
		"| b | `example.com/b` v0.1.0 | 1 | 2 | 1 | 1 | 0 | 0 | 1.3 | not run |\n",
		"Together: 1,240 specs; 1,235 passed, 1 failed, 3 left out, 1 skipped.\n",
		"Not run yet: c.\n",
		"| a | `./x` | `one\\|two` | It needs nodes. |\n",
		"| a | `./y` | all of it | It needs Docker. |\n",
		"| a | `./z` | `TestZ/1` | It fails there, too. |\n",
		"`SUITES=a` takes one",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	record["c"] = record["b"]
	if text := page(table{all[1], all[2]}, record); strings.Contains(text, "Not run yet") || strings.Contains(text, "## Left out") {
		t.Errorf("the page has parts in which nothing stands:\n%s", text)
	}
}

func TestResultsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	none, err := readResults(file)
	if err != nil || len(none) != 0 {
		t.Fatalf("%v %v, want no results", none, err)
	}
	none["a"] = &result{Module: "m", Version: "v1.0.0", Packages: 1, Levelwire: sideSum{counts{Passed: 2}, 3}, Real: &sideSum{counts{Failed: 1}, 4}}
	if err := none.write(file); err != nil {
		t.Fatal(err)
	}
	kept, err := readResults(file)
	if err != nil || *kept["a"].Real != *none["a"].Real || kept["a"].Levelwire != none["a"].Levelwire {
		t.Errorf("%+v %v, want %+v", kept["a"], err, none["a"])
	}
	kept.add("a", &result{Module: "m", Version: "v1.0.0"})
	if kept["a"].Real == nil || *kept["a"].Real != *none["a"].Real {
		t.Errorf("%+v, want what came of it on kube-apiserver before", kept["a"])
	}
	kept.add("a", &result{Module: "m", Version: "v1.1.0"})
	if kept["a"].Real != nil {
		t.Errorf("%+v of another version", kept["a"].Real)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(file); err == nil || !strings.Contains(err.Error(), "remove it to begin anew") {
		t.Errorf("%v, want an error that says what to do", err)
	}
}
