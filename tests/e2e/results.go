package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// States of a test.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped" // by the suite itself
)

// outcome is what came of a test on a side. In JSON it is one string, "failed: the reason".
type outcome struct {
	state string
	why   string // one line; empty if it has passed
}

// MarshalText implements encoding.TextMarshaler.
func (o outcome) MarshalText() ([]byte, error) {
	if o.why == "" {
		return []byte(o.state), nil
	}
	return []byte(o.state + ": " + o.why), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *outcome) UnmarshalText(text []byte) error {
	o.state, o.why, _ = strings.Cut(string(text), ": ")
	if !slices.Contains([]string{passed, failed, skipped}, o.state) {
		return fmt.Errorf("%q is no state of a test", o.state)
	}
	return nil
}

// results are those of all runs so far.
type results struct {
	// Tests has all tests of the suite, also those that have not run, with what came of them by side.
	Tests map[testName]map[string]outcome `json:"tests"`
	// Seconds is how long the tests of a group took one after another when they ran last, by side and group.
	Seconds map[string]map[string]int `json:"seconds"`
	// Recorded is the day and the commit of that run, by side and group.
	Recorded map[string]map[string]string `json:"recorded"`
}

// readResults reads a file of results. There may be none yet.
func readResults(file string) (*results, error) {
	r := &results{Tests: map[testName]map[string]outcome{}, Seconds: map[string]map[string]int{}, Recorded: map[string]map[string]string{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results so far: %w", err)
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s, the results so far: %w (remove it to begin anew)", file, err)
	}
	return r, nil
}

// keepOnly forgets tests that are not in the suite, and adds those that have not run.
func (r *results) keepOnly(suite []testName) {
	tests := make(map[testName]map[string]outcome, len(suite))
	for _, n := range suite {
		if tests[n] = r.Tests[n]; tests[n] == nil {
			tests[n] = map[string]outcome{}
		}
	}
	r.Tests = tests
}

// add takes over what came of tests on a side, and returns those that have failed and had passed before.
func (r *results) add(side string, found map[testName]outcome) (worse []testName) {
	for n, o := range found {
		if r.Tests[n][side].state == passed && o.state == failed {
			worse = append(worse, n)
		}
		if r.Tests[n] == nil {
			r.Tests[n] = map[string]outcome{}
		}
		r.Tests[n][side] = o
	}
	slices.Sort(worse)
	return worse
}

func (r *results) write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// tests returns the names of all tests, sorted.
func (r *results) tests() (all []testName) {
	for n := range r.Tests {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// counts is how many tests came to what on a side.
type counts struct {
	passed, failed, skipped, notRun int
	containers                      int // they need some
}

// count counts some tests. One that needs containers is none that has not run.
func (r *results) count(side string, tests []testName, needs needs) (c counts) {
	for _, n := range tests {
		switch o := r.Tests[n][side]; {
		case needs.of(n) != "":
			c.containers++
		case o.state == passed:
			c.passed++
		case o.state == failed:
			c.failed++
		case o.state == skipped:
			c.skipped++
		default:
			c.notRun++
		}
	}
	return c
}

func (c counts) ran() int { return c.passed + c.failed }

func (c counts) sentence() string {
	said := fmt.Sprintf("%d of %d passed", c.passed, c.ran())
	for _, part := range []struct {
		count int
		what  string
	}{{c.skipped, "skipped by the suite"}, {c.notRun, "not run"}, {c.containers, "need containers"}} {
		if part.count > 0 {
			said += fmt.Sprintf(", %d %s", part.count, part.what)
		}
	}
	return said
}
