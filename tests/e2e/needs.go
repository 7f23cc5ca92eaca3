package main

import (
	_ "embed"
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

//go:embed containers.yaml
var containersYAML []byte

// need is why some tests of a group need containers.
type need struct {
	Group string `json:"group"`
	Why   string `json:"why"`
	// Tests are regular expressions for the beginnings of their titles.
	Tests []string `json:"tests"`

	patterns []*regexp.Regexp
}

type needs []need

// parseNeeds reads the table and checks it.
func parseNeeds(text []byte) (needs, error) {
	var all needs
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("containers.yaml: %w", err)
	}
	for i := range all {
		n := &all[i]
		if n.Group == "" || n.Why == "" || len(n.Tests) == 0 {
			return nil, fmt.Errorf("containers.yaml: entry %d: a group, the reason and tests are needed, not %+v", i+1, *n)
		}
		for _, test := range n.Tests {
			pattern, err := regexp.Compile("^(?:" + test + ")")
			if err != nil {
				return nil, fmt.Errorf("containers.yaml: entry %d: %w", i+1, err)
			}
			n.patterns = append(n.patterns, pattern)
		}
	}
	return all, nil
}

// of returns why a test needs containers, or nothing if it does not.
func (all needs) of(name testName) string {
	for _, n := range all {
		for _, pattern := range n.patterns {
			if n.Group == name.group() && pattern.MatchString(name.title()) {
				return n.Why
			}
		}
	}
	return ""
}
