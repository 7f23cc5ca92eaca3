package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// events are what go tool test2json makes of lines "action test output".
func events(lines ...string) []byte {
	var text strings.Builder
	for _, line := range lines {
		action, rest, _ := strings.Cut(line, " ")
		test, output, _ := strings.Cut(rest, " ")
		text.WriteString(`{"Action":"` + action + `","Test":"` + test + `","Output":"` + output + `\n"}` + "\n")
	}
	return []byte(text.String())
}

func TestGoTestsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		events []byte
		failed error
		want   counts
		names  []string
	}{
		"plain tests": {
			events: events("run TestA", "pass TestA", "run TestB", "skip TestB"),
			want:   counts{Passed: 1, Skipped: 1},
		},
		"a test that holds subtests is none itself": {
			events: events("run TestA", "run TestA/x", "pass TestA/x", "run TestA/y", "skip TestA/y", "pass TestA"),
			want:   counts{Passed: 1, Skipped: 1},
		},
		"a subtest that fails counts once": {
			events: events("run TestA", "run TestA/x", "run TestA/x/1", "fail TestA/x/1", "fail TestA/x", "run TestA/y", "pass TestA/y", "fail TestA"),
			failed: errors.New("exit status 1"),
			want:   counts{Passed: 1, Failed: 1}, names: []string{"TestA/x/1"},
		},
		"a test that fails behind its subtests counts": {
			events: events("run TestA", "run TestA/x", "pass TestA/x", "output TestA after", "fail TestA"),
			failed: errors.New("exit status 1"),
			want:   counts{Passed: 1, Failed: 1}, names: []string{"TestA"},
		},
		"a binary that dies fails the test that was running": {
			events: events("run TestA", "pass TestA", "run TestB", "output TestB panic"),
			failed: errors.New("exit status 2"),
			want:   counts{Passed: 1, Failed: 1}, names: []string{"TestB"},
		},
		"a TestMain that fails is a failure, though no test ran": {
			events: []byte("exit status 1\n"),
			failed: errors.New("exit status 1"),
			want:   counts{Failed: 1}, names: []string{"the test binary"},
		},
		"failures keep their order": {
			events: events("run TestA", "fail TestA", "run TestB", "fail TestB"),
			failed: errors.New("exit status 1"),
			want:   counts{Failed: 2}, names: []string{"TestA", "TestB"},
		},
	} {
		var o outcome
		if _, err := o.count(c.events, nil, c.failed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var names []string
		for _, f := range o.failures {
			names = append(names, f.name)
		}
		if o.counts != c.want || !reflect.DeepEqual(names, c.names) {
			t.Errorf("%s: %+v %q, want %+v %q", name, o.counts, names, c.want, c.names)
		}
	}
}

// report has one spec of each kind, and a BeforeSuite.
const report = `[{"SpecReports": [
	{"LeafNodeType": "BeforeSuite", "State": "passed"},
	{"ContainerHierarchyTexts": ["Pods", "", "when new"], "LeafNodeType": "It", "LeafNodeText": "are pending", "State": "passed"},
	{"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "go", "State": "timedout", "Failure": {"Message": "too late", "Location": {"FileName": "a_test.go", "LineNumber": 7}}},
	{"LeafNodeType": "It", "LeafNodeText": "left out", "State": "skipped"},
	{"LeafNodeType": "It", "LeafNodeText": "skips itself", "State": "skipped", "Failure": {"Message": "not on this machine"}},
	{"LeafNodeType": "It", "LeafNodeText": "is not written yet", "State": "pending"},
	{"LeafNodeType": "AfterSuite", "State": "failed", "Failure": {"Message": "does not stop"}}
]}]`

func TestSpecsOfGinkgoAreCounted(t *testing.T) {
	var o outcome
	ofGo := events("run TestSpecs", "output TestSpecs Running Suite: Pods", "fail TestSpecs", "run TestOther", "pass TestOther")
	if _, err := o.count(ofGo, []byte(report), errors.New("exit status 1")); err != nil {
		t.Fatal(err)
	}
	if want := (counts{Passed: 2, Failed: 2, LeftOut: 1, Skipped: 2}); o.counts != want {
		t.Errorf("%+v, want %+v", o.counts, want)
	}
	want := []failure{
		{"Pods go", "timedout: too late\n\na_test.go:7"},
		{"[AfterSuite] AfterSuite", "failed: does not stop"},
	}
	want[1].name = "[AfterSuite]"
	if !reflect.DeepEqual(o.failures, want) {
		t.Errorf("%+v, want %+v", o.failures, want)
	}
}

// TestSpecsWithoutAReport: when the time of a binary is over, ginkgo writes no report, and nobody
// knows of its specs.
func TestSpecsWithoutAReport(t *testing.T) {
	var o outcome
	if _, err := o.count(events("run TestSpecs", "output TestSpecs Running Suite: Pods"), nil, errors.New("exit status 2")); err != nil {
		t.Fatal(err)
	}
	if o.Failed != 1 || o.failures[0].name != "TestSpecs" || !strings.HasPrefix(o.failures[0].said, "it did not end") {
		t.Errorf("%+v", o)
	}
}

// TestASuiteFailsWithoutASpec: ginkgo fails a suite as a whole, for example for a test that is focused.
func TestASuiteFailsWithoutASpec(t *testing.T) {
	var o outcome
	special := `[{"SpecialSuiteFailureReasons": ["Detected Programmatic Focus"], "SpecReports": [{"LeafNodeType": "It", "State": "passed"}]}]`
	if _, err := o.count(events("run TestSpecs", "output TestSpecs Running Suite: Pods", "fail TestSpecs"), []byte(special), errors.New("exit status 1")); err != nil {
		t.Fatal(err)
	}
	if want := (counts{Passed: 1, Failed: 1}); o.counts != want || o.failures[0].said != "Detected Programmatic Focus" {
		t.Errorf("%+v, want %+v", o, want)
	}
}

func TestWhatCannotBeCounted(t *testing.T) {
	for name, c := range map[string]struct{ events, specs string }{
		"broken events":   {`{"Action":` + "\n", ""},
		"a broken report": {"", `{"SpecReports"`},
	} {
		specs := []byte(c.specs)
		if c.specs == "" {
			specs = nil
		}
		if _, err := new(outcome).count([]byte(c.events), specs, nil); err == nil {
			t.Errorf("%s: it counts", name)
		}
	}
}
