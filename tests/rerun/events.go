package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string // of build-output, in place of Package
	FailedBuild string // the ImportPath that did not compile
}

func readEvents(r io.Reader) ([]event, error) {
	var events []event
	for decoder := json.NewDecoder(r); ; {
		var e event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("reading the events of go test: %w", err)
		}
		events = append(events, e)
	}
}

// packageRun is one run of a package's test binary: all of its tests, or those
// that a rerun chose.
type packageRun struct {
	pkg         string
	failed      bool
	failedBuild bool
	tests       map[string]*testRun
	order       []string // the tests, as they began
	output      []string // of all tests and of none
}

type testRun struct {
	result string // pass, fail, skip; empty while it runs, and if the binary died
	output []string
}

// packageRuns sorts events by the runs that they belong to, in the order in which
// the runs began. Events of several packages are interleaved; a package is not
// run twice at once.
func packageRuns(events []event) []*packageRun {
	var runs []*packageRun
	current := map[string]*packageRun{}
	compiler := map[string][]string{}
	for _, e := range events {
		if e.Action == "build-output" {
			compiler[e.ImportPath] = append(compiler[e.ImportPath], e.Output)
			continue
		}
		if e.Package == "" {
			continue
		}
		run := current[e.Package]
		if run == nil {
			run = &packageRun{pkg: e.Package, tests: map[string]*testRun{}}
			current[e.Package] = run
			runs = append(runs, run)
		}
		if run.add(e) {
			run.output = append(run.output, compiler[e.FailedBuild]...)
			delete(current, e.Package)
		}
	}
	return runs
}

// add returns true if the event ends the run.
func (r *packageRun) add(e event) bool {
	if e.Action == "output" {
		r.output = append(r.output, e.Output)
	}
	ends := slices.Contains([]string{"pass", "fail", "skip"}, e.Action)
	if e.Test == "" {
		r.failed = e.Action == "fail"
		r.failedBuild = e.FailedBuild != ""
		return ends
	}
	test := r.tests[e.Test]
	if test == nil {
		test = &testRun{}
		r.tests[e.Test] = test
		r.order = append(r.order, e.Test)
	}
	switch {
	case e.Action == "output":
		test.output = append(test.output, e.Output)
	case ends:
		test.result = e.Action
	}
	return false
}

// hasTests reports whether a test began.
func (r *packageRun) hasTests() bool { return len(r.order) > 0 }

// failedTests lists the tests that failed, in the order in which they began. A
// test is left out if one of its subtests failed: what it says stands there.
func (r *packageRun) failedTests() []string {
	var failed []string
	for _, name := range r.order {
		if r.tests[name].result == "fail" {
			failed = append(failed, name)
		}
	}
	return slices.DeleteFunc(failed, func(name string) bool {
		return slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}

// lastWords begin the lines with which a test binary or the go command says that
// the binary did not come to its end.
var lastWords = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |signal: |\*\*\* Test killed)`)

// died tells whether tests may not have run, or whether the failure is of the
// package and not of a test: its binary panicked, was killed, ran into its time
// limit, or its TestMain failed.
func (r *packageRun) died() bool {
	if !r.failed || r.failedBuild {
		return false
	}
	unfinished := func(name string) bool { return r.tests[name].result == "" }
	return len(r.failedTests()) == 0 || slices.ContainsFunc(r.order, unfinished) || r.lastWordsAt() >= 0
}

func (r *packageRun) lastWordsAt() int {
	return slices.IndexFunc(r.output, lastWords.MatchString)
}
