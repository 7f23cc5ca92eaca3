package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// readReport reads from a JSON report of ginkgo what came of some tests. The report has every spec
// of the suite; a test that was skipped without a word has failed, for the reason that is given.
func readReport(report []byte, tests []testName, otherwise string) (map[testName]outcome, error) {
	var suites []struct{ SpecReports []specReport }
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("reading ginkgo's report: %w", err)
	}
	var specs []specReport
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType == "It" {
				specs = append(specs, spec)
			} else if strings.HasSuffix(spec.LeafNodeType, "BeforeSuite") && spec.State != passed {
				otherwise = "the suite did not begin: " + spec.why()
			}
		}
	}
	found := make(map[testName]outcome, len(tests))
	for _, n := range tests {
		found[n] = outcome{failed, "the suite has no test of this name"}
	}
	for _, spec := range specs {
		n := newTestName(strings.Join(spec.ContainerHierarchyTexts, " ") + " " + spec.LeafNodeText)
		if _, asked := found[n]; asked {
			found[n] = spec.outcome(otherwise)
		}
	}
	return found, nil
}

// specReport is what is read of a spec, or of a node around specs, such as BeforeSuite.
type specReport struct {
	ContainerHierarchyTexts    []string
	LeafNodeType, LeafNodeText string
	State                      string
	Failure                    struct{ Message, ForwardedPanic string }
}

// outcome is what came of a spec. One that is skipped without a reason was asked for and did not run.
func (r *specReport) outcome(otherwise string) outcome {
	switch {
	case r.State == passed:
		return outcome{state: passed}
	case (r.State == skipped || r.State == "pending") && r.Failure.Message != "":
		return outcome{skipped, r.why()}
	case r.State == skipped || r.State == "pending":
		return outcome{failed, otherwise}
	case r.State == failed:
		return outcome{failed, r.why()}
	}
	return outcome{failed, r.State + ": " + r.why()} // panicked, timedout, interrupted, aborted
}

// longest is how much of a failure is kept; the log has all of it.
const longest = 240

// why is what a failure says, in one line.
func (r *specReport) why() string {
	said := oneLine(r.Failure.Message)
	if r.Failure.ForwardedPanic != "" {
		said = oneLine(r.Failure.ForwardedPanic)
	}
	if runes := []rune(said); len(runes) > longest {
		said = string(runes[:longest]) + "…"
	}
	return said
}

// pointer is what Go prints of one, which is another one each time.
var pointer = regexp.MustCompile(`<[^<>]*\| 0x[0-9a-f]+>|0x[0-9a-f]{6,}`)

func oneLine(text string) string {
	return strings.Join(strings.Fields(pointer.ReplaceAllString(text, "")), " ")
}
