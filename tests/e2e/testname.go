package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// testName is the full name of a test: the texts of its containers and its own, as in
// "[sig-apps] Job should delete a job [Conformance]".
type testName string

// newTestName makes the name of what a report or a list says, in which lines may be folded.
func newTestName(text string) testName { return testName(strings.Join(strings.Fields(text), " ")) }

var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// group is the special interest group without "sig-", as in "apps".
func (n testName) group() string {
	first, _, _ := strings.Cut(string(n), "]")
	return strings.TrimPrefix(first, "[sig-")
}

// title is the name without its group and without what stands in brackets.
func (n testName) title() string {
	return strings.Join(strings.Fields(brackets.ReplaceAllString(string(n), " ")), " ")
}

// alone reports whether no other test may run at the same time.
func (n testName) alone() bool {
	return strings.Contains(string(n), "[Serial]") || strings.Contains(string(n), "[Disruptive]")
}

// focus is a regular expression of ginkgo for this test only. Ginkgo puts the suite's description
// before the name.
func (n testName) focus() string {
	words := strings.Fields(string(n))
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return strings.Join(words, `\s+`) + `\s*$`
}

// groupsOf returns the groups of tests, sorted.
func groupsOf(tests []testName) (groups []string) {
	for _, n := range tests {
		groups = append(groups, n.group())
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// choose returns the tests of the chosen groups whose names match the focus, without those that need
// containers unless these are asked for.
func choose(all []testName, needs needs, o options) (chosen []testName, err error) {
	focus, err := regexp.Compile(o.focus)
	if err != nil {
		return nil, fmt.Errorf("-focus: %w", err)
	}
	wanted := names(o.groups)
	for _, group := range wanted {
		if known := groupsOf(all); !slices.Contains(known, group) {
			return nil, fmt.Errorf("there is no group %s: choose of %s", group, strings.Join(known, ", "))
		}
	}
	for _, n := range all {
		if (len(wanted) == 0 || slices.Contains(wanted, n.group())) && focus.MatchString(string(n)) && (o.containers || needs.of(n) == "") {
			chosen = append(chosen, n)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no test is chosen by groups %q and focus %q; of those that need containers, none is unless -containers is given", o.groups, o.focus)
	}
	return chosen, nil
}

// names are the words of a list with commas or spaces.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
