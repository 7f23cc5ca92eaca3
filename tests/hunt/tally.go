package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tally counts runs, and the tests that failed in them.
type tally struct {
	runs, failed int
	of           map[string]int      // runs of each package
	tests        map[failure]*counts // that failed
}

// failure is a test that failed, or a package's whole binary.
type failure struct{ pkg, test string }

type counts struct {
	times int
	first string // where the output of the first failure is
}

func (t *tally) passed(pkg string) {
	if t.of == nil {
		t.of, t.tests = map[string]int{}, map[failure]*counts{}
	}
	t.runs++
	t.of[pkg]++
}

func (t *tally) failedIn(pkg string, tests []string, file string) {
	t.passed(pkg)
	t.failed++
	for _, test := range tests {
		c := t.tests[failure{pkg, test}]
		if c == nil {
			c = &counts{first: file}
			t.tests[failure{pkg, test}] = c
		}
		c.times++
	}
}

// summary has a line for each test that failed, the most frequent first, and one that
// says how much was tried.
func (t *tally) summary(took time.Duration, seed uint64) string {
	order := slices.SortedFunc(maps.Keys(t.tests), func(a, b failure) int {
		return cmp.Or(cmp.Compare(t.tests[b].times, t.tests[a].times), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
	var text strings.Builder
	for _, f := range order {
		fmt.Fprintf(&text, "%d of %d runs: %s %s (%s)\n", t.tests[f].times, t.of[f.pkg], f.pkg, f.test, t.tests[f].first)
	}
	fmt.Fprintf(&text, "%d of %d runs of %d packages failed in %v, seed %d\n", t.failed, t.runs, len(t.of), took.Round(time.Second), seed)
	return text.String()
}

// unfinished is the error of a hunt without failures that says nothing of some packages:
// none of their runs came to its end.
func (t *tally) unfinished(ctx context.Context, binaries []binary) error {
	var never []string
	for _, b := range binaries {
		if t.of[b.pkg] == 0 {
			never = append(never, b.pkg)
		}
	}
	switch {
	case len(never) == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted before %d of %d packages had run", len(never), len(binaries))
	default:
		return fmt.Errorf("the time was too short for these packages: %s", strings.Join(never, " "))
	}
}

var (
	failLine  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	deathLine = regexp.MustCompile(`(?m)^(panic: |fatal error: ).*$`)
)

// failedTests names the tests that failed in a run, without their subtests, or else says
// how the binary ended.
func failedTests(output []byte, err error) []string {
	var tests []string
	for _, match := range failLine.FindAllSubmatch(output, -1) {
		tests = append(tests, string(match[1]))
	}
	if len(tests) > 0 {
		slices.Sort(tests)
		return slices.Compact(tests)
	}
	if death := deathLine.Find(output); death != nil {
		return []string{string(death)}
	}
	return []string{err.Error()}
}
