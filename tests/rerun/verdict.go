package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostFlaky is how many tests may fail in one run if all of them pass when they
// run again. More are not chance.
const mostFlaky = 3

// mostLines is how many lines of a failure are reported.
const mostLines = 12

// failure is a test, or a package as a whole, that failed at least once.
type failure struct {
	pkg, test string // no test: the package as a whole
	broken    bool   // it did not compile: running it again decides nothing
	failed    int    // of runs
	runs      int
	passed    bool     // the last run passed
	output    []string // the last lines of the first failure
}

// verdict is what became of one go test.
type verdict struct {
	failures []*failure
	skipped  []string // lines that say which tests were, and why
}

// judge follows each failure through all runs. The first run of a package in
// first, and in again, is of all its tests; the others are of single tests.
func judge(first, again []*packageRun) verdict {
	var v verdict
	for _, runs := range [][]*packageRun{first, again} {
		whole := map[string]bool{}
		for _, run := range runs {
			if !whole[run.pkg] {
				v.skipped = append(v.skipped, run.skipped()...)
			}
			v.follow(run, !whole[run.pkg])
			whole[run.pkg] = true
		}
	}
	return v
}

func (v *verdict) follow(run *packageRun, whole bool) {
	// Tests that were told apart before, first: a binary that dies now says
	// nothing good of them.
	for _, known := range v.failures {
		if known.pkg == run.pkg {
			known.follow(run, whole)
		}
	}
	switch {
	case run.failedBuild:
		v.add(&failure{pkg: run.pkg, broken: true, output: lastLines(run.output)})
	case run.died():
		v.add(&failure{pkg: run.pkg, output: run.deathOutput()})
	default:
		for _, test := range run.failedTests() {
			v.add(&failure{pkg: run.pkg, test: test, output: lastLines(run.tests[test].output)})
		}
	}
}

// add notes a failure that is not known yet.
func (v *verdict) add(f *failure) {
	known := func(other *failure) bool { return other.pkg == f.pkg && other.test == f.test }
	if slices.ContainsFunc(v.failures, known) {
		return
	}
	f.failed, f.runs = 1, 1
	v.failures = append(v.failures, f)
}

// follow notes what a later run says of the failure. A run of single tests says
// nothing of a package as a whole, but that it died again.
func (f *failure) follow(run *packageRun, whole bool) {
	ok := !run.died() && !run.failedBuild
	if f.test == "" {
		if !whole && ok {
			return
		}
	} else if test := run.tests[f.test]; test != nil && test.result != "" {
		ok = ok && test.result == "pass"
	} else if ok {
		return // not among the tests of this run
	}
	f.runs++
	f.passed = ok
	if !ok {
		f.failed++
	}
}

// undecided lists the packages to run again as a whole: those with failures that
// have not passed, if one of them is of a package, or of a test that gotestsum did
// not run again. Otherwise each test had its reruns, or there are too many failures
// for any.
func (v verdict) undecided() []string {
	var packages []string
	open := false
	for _, f := range v.failures {
		if f.broken {
			return nil
		}
		if !f.passed {
			open = open || f.test == "" || f.runs == 1
			packages = append(packages, f.pkg)
		}
	}
	if !open || len(v.failures) > mostFlaky {
		return nil
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

func (v verdict) red() bool {
	failed := func(f *failure) bool { return !f.passed }
	return len(v.failures) > mostFlaky || slices.ContainsFunc(v.failures, failed)
}

// write appends the verdict to the files flaky, failed and skipped.
func (v verdict) write(folder string) error {
	var flaky, failed strings.Builder
	for _, f := range v.failures {
		if f.passed {
			f.describe(&flaky, "flaky")
		} else {
			f.describe(&failed, "failed")
		}
	}
	if len(v.failures) > mostFlaky {
		fmt.Fprintf(&failed, "%d tests failed at least once in one go test; at most %d may\n", len(v.failures), mostFlaky)
	}
	if err := appendTo(filepath.Join(folder, "flaky"), flaky.String()); err != nil {
		return err
	}
	if err := appendTo(filepath.Join(folder, "failed"), failed.String()); err != nil {
		return err
	}
	slices.Sort(v.skipped)
	return appendTo(filepath.Join(folder, "skipped"), strings.Join(slices.Compact(v.skipped), ""))
}

// describe writes a line that says what failed and the lines that it printed.
func (f *failure) describe(to *strings.Builder, word string) {
	what := f.test
	switch {
	case f.broken:
		what = "does not compile"
	case what == "":
		what = "the test binary as a whole"
	}
	fmt.Fprintf(to, "%s: %s: %s (failed %d of %d runs)\n", word, f.pkg, what, f.failed, f.runs)
	for _, line := range f.output {
		fmt.Fprintf(to, "    %s\n", line)
	}
}

// deathOutput is how the output goes on from a panic, where there is one.
func (r *packageRun) deathOutput() []string {
	at := r.lastWordsAt()
	if at < 0 {
		return lastLines(r.output)
	}
	lines := nonEmpty(r.output[at:])
	return lines[:min(len(lines), mostLines)]
}

func lastLines(output []string) []string {
	lines := nonEmpty(output)
	return lines[max(0, len(lines)-mostLines):]
}

func nonEmpty(output []string) []string {
	lines := strings.Split(strings.Join(output, ""), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
