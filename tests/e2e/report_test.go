package main

import (
	"maps"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const report = `[{"SpecReports": [
		{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-a] A", "when  new"], "LeafNodeType": "It", "LeafNodeText": "passes", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed",
			"Failure": {"Message": "Expected\n    <*v1.Pod | 0xc000123456>: nil\nnot to be nil"}},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "panics", "State": "panicked",
			"Failure": {"Message": "Test Panicked", "ForwardedPanic": "index out of range"}},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "is too late", "State": "timedout", "Failure": {"Message": "A suite timeout occurred"}},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "skips itself", "State": "skipped", "Failure": {"Message": "needs two zones"}},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "had no time", "State": "skipped"},
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "was not asked for", "State": "skipped"},
		{"LeafNodeType": "ReportAfterSuite", "State": "passed"}
	]}]`
	want := map[testName]outcome{
		"[sig-a] A when new passes": {state: passed},
		"[sig-a] A fails":           {failed, "Expected : nil not to be nil"},
		"[sig-a] A panics":          {failed, "panicked: index out of range"},
		"[sig-a] A is too late":     {failed, "timedout: A suite timeout occurred"},
		"[sig-a] A skips itself":    {skipped, "needs two zones"},
		"[sig-a] A had no time":     {failed, "it did not run"},
		"[sig-a] A is not there":    {failed, "the suite has no test of this name"},
	}
	var asked []testName
	for n := range want {
		asked = append(asked, n)
	}
	found, err := readReport([]byte(report), asked, "it did not run")
	if err != nil || !maps.Equal(found, want) {
		t.Errorf("%+v %v, want %+v", found, err, want)
	}
}

// TestReportOfASuiteThatDidNotBegin: tests that did not run say why.
func TestReportOfASuiteThatDidNotBegin(t *testing.T) {
	const report = `[{"SpecReports": [
		{"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "waits", "State": "skipped"},
		{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "no node is ready"}}
	]}]`
	found, err := readReport([]byte(report), []testName{"[sig-a] A waits"}, "it did not run")
	if want := (outcome{failed, "the suite did not begin: no node is ready"}); err != nil || found["[sig-a] A waits"] != want {
		t.Errorf("%+v %v, want %+v", found, err, want)
	}
}

func TestReportThatIsBroken(t *testing.T) {
	if _, err := readReport([]byte(`[{"SpecReports"`), nil, ""); err == nil || !strings.Contains(err.Error(), "ginkgo's report") {
		t.Errorf("%v, want an error", err)
	}
}

func TestALongReasonIsCut(t *testing.T) {
	r := specReport{}
	r.Failure.Message = strings.Repeat("ä", 2*longest)
	if why := []rune(r.why()); len(why) != longest+1 || why[longest] != '…' {
		t.Errorf("%d runes are left", len(why))
	}
}
