package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// counts is what became of the specs of a package or a suite. A spec is an It of ginkgo, or a
// Go test without subtests: one with subtests only holds them together.
type counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	LeftOut int `json:"leftOut"` // by the table
	Skipped int `json:"skipped"` // by the suite itself
}

func (c counts) specs() int { return c.Passed + c.Failed + c.LeftOut + c.Skipped }

func (c *counts) add(other counts) {
	c.Passed += other.Passed
	c.Failed += other.Failed
	c.LeftOut += other.LeftOut
	c.Skipped += other.Skipped
}

// failure is a spec that failed, or what kept a package from its end.
type failure struct {
	name string
	said string // several lines
}

// goTests is what the events of a test binary say.
type goTests struct {
	byName map[string]*goTest
	order  []string // as they began
	output strings.Builder
}

// goTest is a Go test.
type goTest struct {
	result string // pass, fail or skip; empty if the binary ended before it
	output strings.Builder
	held   bool // it has subtests
	ginkgo bool // it runs the specs of ginkgo
}

// runsGinkgo begins the output of the test that runs specs.
const runsGinkgo = "Running Suite: "

// readTests reads the events of go tool test2json. Between them is what something else printed.
func readTests(events []byte) (*goTests, error) {
	tests := &goTests{byName: map[string]*goTest{}}
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test, Output string }
		if line[0] != '{' {
			tests.output.Write(line)
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the events of the tests: %w", err)
		}
		tests.output.WriteString(e.Output)
		if e.Test != "" {
			tests.add(e.Action, e.Test, e.Output)
		}
	}
	return tests, nil
}

func (t *goTests) add(action, name, output string) {
	test := t.byName[name]
	if test == nil {
		test = new(goTest)
		t.byName[name], t.order = test, append(t.order, name)
		if parent := t.byName[parentOf(name)]; parent != nil {
			parent.held = true
		}
	}
	switch action {
	case "output":
		test.output.WriteString(output)
		test.ginkgo = test.ginkgo || strings.HasPrefix(output, runsGinkgo)
	case "pass", "fail", "skip":
		test.result = action
	}
}

// count counts the tests, but for one that runs ginkgo's specs, unless it did not end. One of which
// a subtest failed is no failure of its own.
func (t *goTests) count() (c counts, failures []failure) {
	failedBelow := map[string]bool{}
	for _, name := range slices.Backward(t.order) {
		switch test := t.byName[name]; {
		case test.ginkgo && test.result != "":
		case test.result == "pass" && !test.held:
			c.Passed++
		case test.result == "skip" && !test.held:
			c.Skipped++
		case test.result == "fail" || test.result == "":
			if !failedBelow[name] {
				c.Failed++
				failures = append(failures, failure{name, test.said()})
			}
			for parent := parentOf(name); parent != ""; parent = parentOf(parent) {
				failedBelow[parent] = true
			}
		}
	}
	slices.Reverse(failures)
	return c, failures
}

func (t *goTest) said() string {
	said := strings.TrimSpace(lastLines(t.output.String(), 20))
	if t.result == "" {
		return "it did not end\n" + said
	}
	return said
}

// parentOf returns the name of the test that a subtest belongs to, or nothing.
func parentOf(name string) string {
	return name[:max(0, strings.LastIndexByte(name, '/'))]
}

// countSpecs counts the specs in a JSON report of ginkgo. What is skipped without a reason was
// left out on the command line.
func countSpecs(report []byte) (c counts, failures []failure, err error) {
	var suites []struct {
		SpecialSuiteFailureReasons []string
		SpecReports                []specReport
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return c, nil, fmt.Errorf("reading ginkgo's report: %w", err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			isSpec := spec.LeafNodeType == "It"
			switch spec.State {
			case "passed":
				if isSpec {
					c.Passed++
				}
			case "skipped", "pending":
				switch {
				case !isSpec:
				case spec.State == "skipped" && spec.Failure.Message == "":
					c.LeftOut++
				default:
					c.Skipped++
				}
			default: // failed, panicked, timedout, interrupted, aborted
				c.Failed++
				failures = append(failures, spec.failure())
			}
		}
		if c.Failed == 0 && len(suite.SpecialSuiteFailureReasons) > 0 {
			c.Failed++
			failures = append(failures, failure{"the suite", strings.Join(suite.SpecialSuiteFailureReasons, "\n")})
		}
	}
	return c, failures, nil
}

// specReport is what is read of a spec, or of a node around specs, such as BeforeSuite.
type specReport struct {
	ContainerHierarchyTexts    []string
	LeafNodeType, LeafNodeText string
	State                      string
	Failure                    struct {
		Message, ForwardedPanic string
		Location                location
	}
}

type location struct {
	FileName   string
	LineNumber int
}

func (r *specReport) failure() failure {
	texts := append(slices.Clone(r.ContainerHierarchyTexts), r.LeafNodeText)
	if r.LeafNodeType != "It" {
		texts = append([]string{"[" + r.LeafNodeType + "]"}, texts...)
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	said := fmt.Sprintf("%s: %s\n%s\n%s", r.State, r.Failure.Message, r.Failure.ForwardedPanic, r.at())
	return failure{strings.Join(texts, " "), strings.TrimSpace(said)}
}

func (r *specReport) at() string {
	if r.Failure.Location.FileName == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", r.Failure.Location.FileName, r.Failure.Location.LineNumber)
}
