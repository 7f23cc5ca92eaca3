package main

import (
	"fmt"
	"math"
	"strings"
)

// head begins the page.
const head = `# Other projects' test suites

Suites that these projects publish, run unmodified: their tests start etcd and kube-apiserver with envtest, and get the
[stand-ins](testing.md#with-envtest-stand-ins) in their place. This is what somebody can expect whose own tests do the same.
` + "`make test-suites`" + ` repeats it, and writes this page; ` + "`SUITES=%s`" + ` takes one. [How it works](../../tests/suites/main.go), and
[the table of suites](../../tests/suites/suites.yaml).

A suite is fetched by its module and version and compiled with its own dependencies. Run are those packages that link envtest, one after
another, and of these all specs: each It of ginkgo, and each Go test or subtest that has no subtests. Left out is what the list below
names; skipped is what the suite itself skips. Seconds are the run time of the test binaries, without compiling. Those on the real kube-apiserver 1.37.2 and
etcd are of the same binaries in the same run, on a machine of two cores that does other things, too.

`

// page writes the page from the table and from the results of all runs.
func page(all table, record results) string {
	var text strings.Builder
	fmt.Fprintf(&text, head, all[0].Name)
	text.WriteString("| suite | module and version | packages | specs | passed | failed | left out | skipped | seconds | on kube-apiserver |\n|-|-|-:|-:|-:|-:|-:|-:|-:|-|\n")
	var sum counts
	var waiting []string
	for _, s := range all {
		found := record[s.Name]
		if found == nil {
			waiting = append(waiting, s.Name)
			continue
		}
		sum.add(found.Levelwire.counts)
		text.WriteString(row(&s, found))
	}
	fmt.Fprintf(&text, "\nTogether: %s specs; %s passed, %d failed, %d left out, %d skipped.\n",
		thousands(sum.specs()), thousands(sum.Passed), sum.Failed, sum.LeftOut, sum.Skipped)
	if len(waiting) > 0 {
		fmt.Fprintf(&text, "\nNot run yet: %s.\n", strings.Join(waiting, ", "))
	}
	text.WriteString(exceptions(all))
	return text.String()
}

// row is the line of a suite.
func row(s *suite, found *result) string {
	c := found.Levelwire.counts
	return fmt.Sprintf("| %s | `%s` %s | %d | %d | %d | %d | %d | %d | %s | %s |\n", s.Name, found.Module, found.Version, found.Packages,
		c.specs(), c.Passed, c.Failed, c.LeftOut, c.Skipped, inSeconds(found.Levelwire.Seconds), beside(found.Real))
}

// beside says what came of a suite on the real programs.
func beside(real *sideSum) string {
	switch {
	case real == nil:
		return "not run"
	case real.Failed == 0:
		return inSeconds(real.Seconds)
	}
	return fmt.Sprintf("%s, %d failed", inSeconds(real.Seconds), real.Failed)
}

// inSeconds has as many digits as mean something.
func inSeconds(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1f", s)
	}
	return thousands(int(math.Round(s)))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// exceptions lists what the table leaves out.
func exceptions(all table) string {
	var text strings.Builder
	for _, s := range all {
		for _, l := range s.LeftOut {
			what := "all of it"
			switch {
			case l.Spec != "":
				what = "`" + l.Spec + "`"
			case l.Test != "":
				what = "`" + l.Test + "`"
			}
			fmt.Fprintf(&text, "| %s | `%s` | %s | %s |\n", s.Name, l.Package, strings.ReplaceAll(what, "|", `\|`), l.Why)
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return "\n## Left out\n\n| suite | package | specs | why |\n|-|-|-|-|\n" + text.String()
}
