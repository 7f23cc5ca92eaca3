package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	n := newTestName("[sig-apps] StatefulSet Basic  [StatefulSetBasic] should\n  scale (a|b) [Conformance] [Slow]")
	if n.group() != "apps" || n.title() != "StatefulSet Basic should scale (a|b)" || n.alone() {
		t.Errorf("%q: %q %q %v", n, n.group(), n.title(), n.alone())
	}
	for _, name := range []testName{"[sig-node] Taints [Serial]", "[sig-node] Taints [Disruptive] [Conformance]"} {
		if !name.alone() {
			t.Errorf("%s runs beside others", name)
		}
	}
}

// TestFocus: a test is chosen by its whole name, so that another one whose name goes on is not.
func TestFocus(t *testing.T) {
	focus := regexp.MustCompile(testName("[sig-apps] Job (a) [Conformance]").focus())
	for text, want := range map[string]bool{
		"Kubernetes e2e suite [sig-apps] Job (a) [Conformance]":       true,
		"Kubernetes e2e suite [sig-apps] Job  (a) [Conformance] ":     true,
		"Kubernetes e2e suite [sig-apps] Job (a) [Conformance] twice": false,
		"Kubernetes e2e suite [sig-apps] Job a [Conformance]":         false,
	} {
		if focus.MatchString(text) != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []testName{"[sig-a] one", "[sig-a] two [Serial]", "[sig-b] one", "[sig-b] three"}
	needs, err := parseNeeds([]byte(`[{group: b, why: it runs, tests: [thr]}]`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    options
		want []testName
		err  string
	}{
		"all":                    {options{}, all[:3], ""},
		"a group":                {options{groups: "a"}, all[:2], ""},
		"groups":                 {options{groups: "b, a"}, all[:3], ""},
		"a focus":                {options{focus: "one"}, []testName{all[0], all[2]}, ""},
		"both":                   {options{groups: "a", focus: "one"}, all[:1], ""},
		"with containers":        {options{groups: "b", containers: true}, all[2:], ""},
		"no such group":          {options{groups: "c"}, nil, "choose of a, b"},
		"nothing":                {options{focus: "three"}, nil, "-containers"},
		"a focus that is no one": {options{focus: "("}, nil, "-focus"},
	} {
		chosen, err := choose(all, needs, c.o)
		if !slices.Equal(chosen, c.want) || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q %v, want %q %q", name, chosen, err, c.want, c.err)
		}
	}
}

func TestSidesAreChosenInTheirOrder(t *testing.T) {
	chosen, err := chooseSides("judge,ours")
	if err != nil || len(chosen) != 2 || chosen[0].name != "judge" || chosen[1].name != "ours" {
		t.Errorf("%+v %v", chosen, err)
	}
	for _, wrong := range []string{"", "mine"} {
		if _, err := chooseSides(wrong); err == nil || !strings.Contains(err.Error(), "theirs, ours, judge") {
			t.Errorf("%q: %v, want an error that names the sides", wrong, err)
		}
	}
}

// TestParts: the tests of a group run one after another, the larger group begins, and those that run alone are apart.
func TestParts(t *testing.T) {
	together, alone := partsOf([]testName{"[sig-a] one", "[sig-a] two [Serial]", "[sig-b] one", "[sig-b] two", "[sig-c] one [Serial]"})
	var said []string
	for _, p := range append(together, alone...) {
		for _, n := range p.tests {
			said = append(said, p.name+"/"+p.group+" "+n.title())
		}
	}
	want := []string{"b/b one", "b/b two", "a/a one", "a-alone/a two", "c-alone/c one"}
	if !slices.Equal(said, want) || len(together) != 2 {
		t.Errorf("%d together, %q, want %q", len(together), said, want)
	}
}

// TestALargeGroupIsDivided: each test is in one part, parts are of about the same size, and neighbours are apart.
func TestALargeGroupIsDivided(t *testing.T) {
	var tests []testName
	for i := range 2*mostInPart + 1 {
		tests = append(tests, testName(fmt.Sprintf("[sig-a] %03d", i)))
	}
	together, _ := partsOf(tests)
	var all []testName
	for i, p := range together {
		if p.group != "a" || p.name != fmt.Sprintf("a-%d", i+1) || len(p.tests) < 13 || len(p.tests) > 14 || p.tests[0] != tests[i] || p.tests[1] != tests[i+3] {
			t.Errorf("part %d is %+v", i, p)
		}
		all = append(all, p.tests...)
	}
	if slices.Sort(all); len(together) != 3 || !slices.Equal(all, tests) {
		t.Errorf("%d parts with %q", len(together), all)
	}
}
