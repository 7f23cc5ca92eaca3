package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script is what go test says of a run: a line "PACKAGE TEST RESULT" for each
// test, and "PACKAGE RESULT" for its end; "@NAME" is testdata/NAME.json, which go
// test wrote.
type script []string

func (s script) events(t *testing.T) []event {
	t.Helper()
	var events []event
	for _, line := range s {
		if name, ok := strings.CutPrefix(line, "@"); ok {
			file, err := os.Open(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			recorded, err := readEvents(file)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, recorded...)
			continue
		}
		words := strings.Fields(line)
		e := event{Package: words[0], Action: words[len(words)-1]}
		if len(words) == 3 {
			e.Test = words[1]
			events = append(events, event{Package: e.Package, Test: e.Test, Action: "output", Output: "output of " + e.Test + "\n"})
		}
		if e.Action == "build" {
			e.Action, e.FailedBuild = "fail", e.Package
		}
		events = append(events, e)
	}
	return events
}

// broken is whether gotestsum would say that the run failed: some package's last
// run did.
func (s script) broken(t *testing.T) bool {
	last := map[string]bool{}
	for _, run := range packageRuns(s.events(t)) {
		last[run.pkg] = run.failed
	}
	for _, failed := range last {
		if failed {
			return true
		}
	}
	return false
}

func TestVerdict(t *testing.T) {
	const (
		died      = "p TestDies run"
		panicking = "@panic"
	)
	cases := []struct {
		name          string
		first, again  script   // what the two calls of gotestsum say
		whole         []string // the packages of the second call
		flaky, failed []string
		red           bool
	}{
		{
			name:  "all pass",
			first: script{"p TestA pass", "p pass"},
		},
		{
			name:  "passes when run again alone",
			first: script{"p TestA fail", "p TestB pass", "p fail", "p TestA pass", "p pass"},
			flaky: []string{"p TestA 1/2"},
		},
		{
			name:  "passes at the second rerun",
			first: script{"p TestA fail", "p fail", "p TestA fail", "p fail", "p TestA pass", "p pass"},
			flaky: []string{"p TestA 2/3"},
		},
		{
			name:   "fails every time",
			first:  script{"p TestA fail", "p fail", "p TestA fail", "p fail", "p TestA fail", "p fail"},
			failed: []string{"p TestA 3/3"},
			red:    true,
		},
		{
			name:  "a subtest stands for its parents",
			first: script{"@subtest"},
			flaky: []string{"example.com/subtest TestOnce/y 1/2"},
		},
		{
			name:   "a rerun that no longer has the subtest decides nothing",
			first:  script{"p TestA/x fail", "p TestA fail", "p fail", "p pass"},
			again:  script{"p TestA pass", "p pass"},
			whole:  []string{"p"},
			failed: []string{"p TestA/x 1/1"},
			red:    true,
		},
		{
			name:  "gotestsum ran nothing again",
			first: script{"p TestA fail", "p fail"},
			again: script{"p TestA pass", "p pass"},
			whole: []string{"p"},
			flaky: []string{"p TestA 1/2"},
		},
		{
			name:   "a rerun that is skipped did not pass",
			first:  script{"p TestA fail", "p fail", "p TestA skip", "p pass"},
			failed: []string{"p TestA 2/2"},
			red:    true,
		},
		{
			name:  "a panic once",
			first: script{panicking}, again: script{"example.com/panic TestPanics pass", "example.com/panic TestAfter pass", "example.com/panic pass"},
			whole: []string{"example.com/panic"},
			flaky: []string{"example.com/panic  1/2"},
		},
		{
			name:  "a panic each time",
			first: script{panicking}, again: script{panicking},
			whole:  []string{"example.com/panic"},
			failed: []string{"example.com/panic  2/2"},
			red:    true,
		},
		{
			name:  "a test that failed beside a panic runs again with its package",
			first: script{panicking, "p TestA fail", "p fail"}, again: script{"p TestA pass", "p pass", "example.com/panic TestPanics pass", "example.com/panic pass"},
			whole: []string{"example.com/panic", "p"},
			flaky: []string{"example.com/panic  1/2", "p TestA 1/2"},
		},
		{
			name:  "a time limit once",
			first: script{"@timeout"}, again: script{"example.com/timeout TestHangs pass", "example.com/timeout pass"},
			whole: []string{"example.com/timeout"},
			flaky: []string{"example.com/timeout  1/2"},
		},
		{
			// gotestsum reruns no test, and calls that a success.
			name:  "a TestMain that fails once",
			first: script{"@testmain"}, again: script{"example.com/testmain TestAfter pass", "example.com/testmain pass"},
			whole: []string{"example.com/testmain"},
			flaky: []string{"example.com/testmain  1/2"},
		},
		{
			name:  "a TestMain that fails each time",
			first: script{"@testmain"}, again: script{"@testmain"},
			whole:  []string{"example.com/testmain"},
			failed: []string{"example.com/testmain  2/2"},
			red:    true,
		},
		{
			name:  "a binary that ends amid a test",
			first: script{died, "p fail"}, again: script{"p TestDies pass", "p pass"},
			whole: []string{"p"},
			flaky: []string{"p  1/2"},
		},
		{
			name:  "another test fails when the package runs again",
			first: script{panicking}, again: script{"example.com/panic TestAfter fail", "example.com/panic fail", "example.com/panic TestAfter pass", "example.com/panic pass"},
			whole: []string{"example.com/panic"},
			flaky: []string{"example.com/panic  1/2", "example.com/panic TestAfter 1/2"},
		},
		{
			name:  "a rerun that panics runs its package again",
			first: script{"p TestA fail", "p fail", "p TestA run", "p fail"}, again: script{"p TestA pass", "p pass"},
			whole: []string{"p"},
			flaky: []string{"p TestA 2/3", "p  1/2"},
		},
		{
			name:   "what does not compile is not run again",
			first:  script{"p build"},
			failed: []string{"p  1/1"},
			red:    true,
		},
		{
			name:  "three flaky tests are as many as may be",
			first: script{"p TestA fail", "p TestB fail", "p TestC fail", "p fail", "p TestA pass", "p pass", "p TestB pass", "p pass", "p TestC pass", "p pass"},
			flaky: []string{"p TestA 1/2", "p TestB 1/2", "p TestC 1/2"},
		},
		{
			name:   "four failures are no chance",
			first:  script{"p TestA fail", "p TestB fail", "p TestC fail", "p TestD fail", "p fail"},
			failed: []string{"p TestA 1/1", "p TestB 1/1", "p TestC 1/1", "p TestD 1/1"},
			red:    true,
		},
		{
			name:  "a panic and three failures are no chance",
			first: script{panicking, "p TestA fail", "p TestB fail", "p TestC fail", "p fail"},
			failed: []string{
				"example.com/panic  1/1", "p TestA 1/1", "p TestB 1/1", "p TestC 1/1",
			},
			red: true,
		},
		{
			name:  "a fourth flaky test in the second call",
			first: script{panicking, "p TestA fail", "p TestB fail", "p fail"},
			again: script{
				"p TestA pass", "p TestB pass", "p pass", "example.com/panic TestAfter fail", "example.com/panic fail",
				"example.com/panic TestAfter pass", "example.com/panic pass",
			},
			whole: []string{"example.com/panic", "p"},
			flaky: []string{"example.com/panic  1/2", "p TestA 1/2", "p TestB 1/2", "example.com/panic TestAfter 1/2"},
			red:   true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var calls [][]string
			scripts := []script{c.first, c.again}
			got, err := run(func(flags, packages []string, reruns int) ([]event, bool, error) {
				if !slices.Equal(flags, []string{"-short", "-p=4"}) || reruns != 2-len(calls) {
					t.Errorf("flags %q, %d reruns", flags, reruns)
				}
				calls = append(calls, packages)
				said := scripts[len(calls)-1]
				return said.events(t), said.broken(t), nil
			}, []string{"-short", "-p=4", "./..."})
			if err != nil {
				t.Fatal(err)
			}
			var flaky, failed []string
			for _, f := range got.failures {
				line := f.pkg + " " + f.test + " " + string(rune('0'+f.failed)) + "/" + string(rune('0'+f.runs))
				if f.passed {
					flaky = append(flaky, line)
				} else {
					failed = append(failed, line)
				}
			}
			if !slices.Equal(flaky, c.flaky) || !slices.Equal(failed, c.failed) || got.red() != c.red {
				t.Errorf("flaky %q, failed %q, red %v; want %q, %q, %v", flaky, failed, got.red(), c.flaky, c.failed, c.red)
			}
			want := [][]string{{"./..."}}
			if c.whole != nil {
				want = append(want, c.whole)
			}
			if !slices.EqualFunc(calls, want, slices.Equal[[]string]) {
				t.Errorf("tested %q, want %q", calls, want)
			}
		})
	}
}

// TestFailureWithoutEvents: go test that fails before it runs a test is no
// success.
func TestFailureWithoutEvents(t *testing.T) {
	_, err := run(func(_, _ []string, _ int) ([]event, bool, error) { return nil, true, nil }, []string{"-nosuchflag", "./..."})
	if err == nil {
		t.Error("no error for a go test that could not start")
	}
	_, err = run(func(_, _ []string, _ int) ([]event, bool, error) { return nil, false, errors.New("no gotestsum") }, []string{"./..."})
	if err == nil {
		t.Error("no error where gotestsum cannot be run")
	}
	if _, err = run(nil, []string{"-short"}); err == nil {
		t.Error("no error where no package is named")
	}
}

// TestNamesOfNoTest: a -run that matches nothing is no success.
func TestNamesOfNoTest(t *testing.T) {
	for name, tt := range map[string]struct {
		flag  string
		first script
		ok    bool
	}{
		"none":               {"-run=^TestGone", script{"p pass", "q pass"}, false},
		"of one package":     {"-run=^TestA", script{"p pass", "q TestA pass", "q pass"}, true},
		"skipped":            {"-run=^TestA", script{"p TestA skip", "p pass"}, true},
		"all are asked for":  {"-short", script{"p pass"}, true},
		"it did not compile": {"-run=^TestA", script{"p build"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(func(_, _ []string, _ int) ([]event, bool, error) { return tt.first.events(t), tt.first.broken(t), nil }, []string{tt.flag, "./..."})
			if (err == nil) != tt.ok {
				t.Error(err)
			}
		})
	}
}

// TestSkippedTests are reported once, with what they say.
func TestSkippedTests(t *testing.T) {
	folder := t.TempDir()
	runs := packageRuns(script{"p TestB skip", "p TestA skip", "p TestC fail", "p fail", "p TestC pass", "p TestA skip", "p pass"}.events(t))
	if err := judge(runs, nil).write(folder); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, folder, "skipped"), "p: TestA: output of TestA\np: TestB: output of TestB\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	folder := t.TempDir()
	first := packageRuns(script{"@panic", "@subtest"}.events(t))
	again := packageRuns(script{"example.com/panic TestPanics pass", "example.com/panic pass"}.events(t))
	for range 2 { // a second go test of the same step appends
		if err := judge(first, again).write(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := judge(first, nil).write(folder); err != nil {
		t.Fatal(err)
	}
	const (
		death = "example.com/panic: the test binary as a whole"
		once  = "flaky: example.com/subtest: TestOnce/y (failed 1 of 2 runs)\n" +
			"    === RUN   TestOnce/y\n        a_test.go:3: hello y\n        a_test.go:3: first time\n    --- FAIL: TestOnce/y (0.00s)\n"
	)
	flaky, failed := read(t, folder, "flaky"), read(t, folder, "failed")
	if strings.Count(flaky, "flaky: "+death+" (failed 1 of 2 runs)\n    panic: boom") != 2 || strings.Count(flaky, once) != 3 {
		t.Errorf("flaky:\n%s", flaky)
	}
	if !strings.HasPrefix(failed, "failed: "+death+" (failed 1 of 1 runs)\n    panic: boom") || strings.Count(failed, "\n") != 1+mostLines {
		t.Errorf("failed:\n%s", failed)
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
