package main

import (
	"strings"
	"testing"
)

// TestNeeds: each pattern of the table is for tests that there are, and no test has two reasons.
func TestNeeds(t *testing.T) {
	needs, err := parseNeeds(containersYAML)
	if err != nil {
		t.Fatal(err)
	}
	record, err := readResults("results.json")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, n := range record.tests() {
		var reasons []string
		for _, need := range needs {
			for i, pattern := range need.patterns {
				if need.Group == n.group() && pattern.MatchString(n.title()) {
					reasons = append(reasons, need.Why)
					used[need.Group+need.Tests[i]] = true
				}
			}
		}
		if len(reasons) > 1 {
			t.Errorf("%s has several reasons: %q", n, reasons)
		}
	}
	for _, need := range needs {
		for _, test := range need.Tests {
			if !used[need.Group+test] {
				t.Errorf("no test of group %s is called %s", need.Group, test)
			}
		}
	}
}

func TestNeedsThatAreWrong(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":        `[{group: a, tests: [b]}]`,
		"no tests":         `[{group: a, why: c}]`,
		"no group":         `[{why: c, tests: [b]}]`,
		"no expression":    `[{group: a, why: c, tests: ["("]}]`,
		"an unknown field": `[{group: a, why: c, tests: [b], test: b}]`,
	} {
		if _, err := parseNeeds([]byte(text)); err == nil || !strings.Contains(err.Error(), "containers.yaml") {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
	}
}
