package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPageSaysWhatTheResultsSay: nobody writes into the page by hand, and whoever changes the table
// writes it again.
func TestPageSaysWhatTheResultsSay(t *testing.T) {
	needs, err := parseNeeds(containersYAML)
	if err != nil {
		t.Fatal(err)
	}
	record, err := readResults("results.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/users/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(record, needs) {
		t.Error("docs/users/conformance.md is not what containers.yaml and results.json say: run go run ./tests/e2e -rewrite")
	}
}

func someResults(t *testing.T) (*results, needs) {
	t.Helper()
	needs, err := parseNeeds([]byte(`[{group: b, why: needs a container that runs, tests: [thr]}]`))
	if err != nil {
		t.Fatal(err)
	}
	return &results{
		Tests: map[testName]map[string]outcome{
			"[sig-a] one":         {"theirs": {state: passed}, "ours": {failed, "a | <b>"}},
			"[sig-a] two [Slow]":  {"theirs": {failed, "late"}, "ours": {skipped, "no zones"}, "judge": {state: passed}},
			"[sig-b] three *not*": {},
			"[sig-b] four":        {},
		},
		Seconds:  map[string]map[string]int{"theirs": {"a": 12}},
		Recorded: map[string]map[string]string{"theirs": {"a": "2026-01-01, commit 1"}, "judge": {"a": "2026-01-02, commit 2", "b": "2026-01-03, commit 3"}},
	}, needs
}

func TestPage(t *testing.T) {
	record, needs := someResults(t)
	text := page(record, needs)
	for _, want := range []string{
		"The 4 tests of",
		"| a | 2 | 0 | 1 of 2 (12) | 0 of 1 | 1 of 1 |\n",
		"| b | 2 | 1 | not run | not run | not run |\n",
		"| all | 4 | 1 | 1 of 2 | 0 of 1 | 1 of 1 |\n",
		"\nRecorded with theirs on 2026-01-01, commit 1.\n",
		"\nRecorded with kube-apiserver on 2026-01-02, commit 2 (a).\n\nRecorded with kube-apiserver on 2026-01-03, commit 3 (b).\n",
		"| a | one | ours | a \\| \\<b> |\n",
		"| a | two | theirs | late |\n",
		"\n### b\n",
		"| one | passed | failed | not run |\n",
		"| two | failed | skipped: no zones | passed |\n",
		"| three \\*not\\* | needs a container that runs | | |\n",
		"| four | not run | not run | not run |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if text := page(&results{}, needs); strings.Contains(text, "## What failed") {
		t.Errorf("the page has a part in which nothing stands:\n%s", text)
	}
}

func TestCounts(t *testing.T) {
	record, needs := someResults(t)
	c := record.count("ours", record.tests(), needs)
	if want := (counts{failed: 1, skipped: 1, notRun: 1, containers: 1}); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if said, want := c.sentence(), "0 of 1 passed, 1 skipped by the suite, 1 not run, 1 need containers"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
}

func TestResultsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	if none, err := readResults(file); err != nil || len(none.Tests) != 0 {
		t.Fatalf("%v %v, want no results", none, err)
	}
	record, _ := someResults(t)
	if err := record.write(file); err != nil {
		t.Fatal(err)
	}
	kept, err := readResults(file)
	if err != nil || !reflect.DeepEqual(kept, record) {
		t.Errorf("%+v %v, want %+v", kept, err, record)
	}
	kept.keepOnly([]testName{"[sig-a] one", "[sig-c] new"})
	if got := kept.tests(); !slices.Equal(got, []testName{"[sig-a] one", "[sig-c] new"}) || kept.Tests["[sig-a] one"]["theirs"].state != passed {
		t.Errorf("%+v, want the tests of the suite with what came of them", kept.Tests)
	}
	for _, text := range []string{"{", `{"tests": {"[sig-a] one": {"ours": "well"}}}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readResults(file); err == nil || !strings.Contains(err.Error(), "remove it to begin anew") {
			t.Errorf("%s: %v, want an error that says what to do", text, err)
		}
	}
}

// TestWhatBecomesWorse: a test that has passed on a side and fails there is worse, and is written all the same.
func TestWhatBecomesWorse(t *testing.T) {
	record, needs := someResults(t)
	folder := t.TempDir()
	o := options{results: filepath.Join(folder, "results.json"), page: filepath.Join(folder, "page.md")}
	keep := &keeper{record: record, needs: needs, o: o, run: "today"}
	a, alone := part{"a", "a", nil}, part{"a-alone", "a", nil}
	if err := keep.add("theirs", a, map[testName]outcome{"[sig-a] two [Slow]": {failed, "again"}}, 3*time.Second); err != nil || keep.worse {
		t.Errorf("%v %v: it had failed before", keep.worse, err)
	}
	if err := keep.add("theirs", alone, map[testName]outcome{"[sig-a] one": {failed, "now"}}, 4*time.Second); err != nil || !keep.worse {
		t.Errorf("%v %v: it had passed before", keep.worse, err)
	}
	written, err := os.ReadFile(o.page)
	if err != nil || !strings.Contains(string(written), "| a | 2 | 0 | 0 of 2 (7) |") || !strings.Contains(string(written), "Recorded with theirs on today.") {
		t.Errorf("%v\n%s", err, written)
	}
}
