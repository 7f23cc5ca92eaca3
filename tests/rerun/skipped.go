package main

import (
	"fmt"
	"strings"
)

// skipped returns a line for each test that was skipped: which, and why.
func (r *packageRun) skipped() (lines []string) {
	for _, name := range r.order {
		if test := r.tests[name]; test.result == "skip" {
			lines = append(lines, fmt.Sprintf("%s: %s: %s\n", r.pkg, name, test.reason()))
		}
	}
	return lines
}

// reason is what a skipped test said, beside what go test says of it.
func (t *testRun) reason() string {
	var said []string
	for _, line := range nonEmpty(t.output) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
