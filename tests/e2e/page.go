package main

import (
	"fmt"
	"strings"
)

// head begins the page. Its place is for the number of tests.
const head = `# Kubernetes' conformance tests

The %d tests of Kubernetes' own conformance suite, unmodified, built from the published module (1.37.2). They run on Levelwire's server with Kubernetes' own
controller manager and scheduler ("theirs"), on all that ` + "`levelwire up`" + ` starts ("ours"), and on the real kube-apiserver with Kubernetes' components
("kube-apiserver"), which tells whether a failure is our server's. Nodes are simulated everywhere: three of ` + "`levelwire kubelet`" + `. No container runs, so
what needs one is left out, and this is no claim of conformance: a cluster conforms if all of its tests pass.

` + "`make test-conformance`" + ` repeats it, and writes this page; ` + "`E2E_GROUPS=scheduling,auth`" + ` takes some groups, ` + "`E2E_SIDES=theirs,judge`" + ` some sides, and
` + "`E2E_FOCUS`" + ` tests by a regular expression. [How it works](../../tests/e2e/main.go), and [what needs containers](../../tests/e2e/containers.yaml).

A group is what a special interest group (sig) has written. Of those that ran, so many passed; in brackets, the seconds that they took one after another, with others at the same time.

`

// page writes the page from the results of all runs.
func page(record *results, needs needs) string {
	var text strings.Builder
	all := record.tests()
	fmt.Fprintf(&text, head, len(all))
	text.WriteString("| group | tests | need containers | theirs | ours | kube-apiserver |\n|-|-:|-:|-|-|-|\n")
	for _, group := range groupsOf(all) {
		text.WriteString(sumRow(record, needs, group, group, ofGroup(all, group)))
	}
	text.WriteString(sumRow(record, needs, "all", "", all))
	text.WriteString(recorded(record, groupsOf(all)))
	text.WriteString(failures(record, needs, all))
	text.WriteString("\n## Test by test\n\nNames are without what stands in brackets in them.\n")
	for _, group := range groupsOf(all) {
		fmt.Fprintf(&text, "\n### %s\n\n| test | theirs | ours | kube-apiserver |\n|-|-|-|-|\n", group)
		for _, n := range ofGroup(all, group) {
			text.WriteString(testRow(record, needs, n))
		}
	}
	return text.String()
}

func ofGroup(all []testName, group string) (tests []testName) {
	for _, n := range all {
		if n.group() == group {
			tests = append(tests, n)
		}
	}
	return tests
}

// sumRow is the line of a group, or of all tests, of which no seconds are known.
func sumRow(record *results, needs needs, name, group string, tests []testName) string {
	row := fmt.Sprintf("| %s | %d | %d |", name, len(tests), record.count("", tests, needs).containers)
	for _, s := range allSides {
		cell := "not run"
		if c := record.count(s.name, tests, needs); c.ran() > 0 {
			cell = fmt.Sprintf("%d of %d", c.passed, c.ran())
			if seconds := record.Seconds[s.name][group]; seconds > 0 {
				cell += fmt.Sprintf(" (%d)", seconds)
			}
		}
		row += " " + cell + " |"
	}
	return row + "\n"
}

// recorded says when the groups ran last on each side.
func recorded(record *results, groups []string) string {
	var text strings.Builder
	for _, s := range allSides {
		var runs []string
		of := map[string][]string{}
		for _, group := range groups {
			run := record.Recorded[s.name][group]
			if run == "" {
				continue
			}
			if of[run] == nil {
				runs = append(runs, run)
			}
			of[run] = append(of[run], group)
		}
		for _, run := range runs {
			fmt.Fprintf(&text, "\nRecorded with %s on %s", column(s.name), run)
			if len(runs) > 1 {
				fmt.Fprintf(&text, " (%s)", strings.Join(of[run], ", "))
			}
			text.WriteString(".\n")
		}
	}
	return text.String()
}

// failures lists what has failed on a side, and what that says.
func failures(record *results, needs needs, all []testName) string {
	var text strings.Builder
	for _, n := range all {
		for _, s := range allSides {
			if o := record.Tests[n][s.name]; o.state == failed && needs.of(n) == "" {
				fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", n.group(), cell(n.title()), column(s.name), cell(o.why))
			}
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return "\n## What failed\n\n| group | test | on | what it says |\n|-|-|-|-|\n" + text.String()
}

// testRow is the line of a test.
func testRow(record *results, needs needs, n testName) string {
	if why := needs.of(n); why != "" {
		return fmt.Sprintf("| %s | %s | | |\n", cell(n.title()), why)
	}
	row := "| " + cell(n.title()) + " |"
	for _, s := range allSides {
		switch o := record.Tests[n][s.name]; o.state {
		case "":
			row += " not run |"
		case skipped:
			row += " skipped: " + cell(o.why) + " |"
		default:
			row += " " + o.state + " |"
		}
	}
	return row + "\n"
}

// column is what the page calls a side.
func column(side string) string {
	if side == "judge" {
		return "kube-apiserver"
	}
	return side
}

// cell is a text that is not to be taken for Markdown or HTML.
func cell(text string) string {
	for _, c := range []string{`\`, "|", "<", "[", "*", "_", "`"} {
		text = strings.ReplaceAll(text, c, `\`+c)
	}
	return text
}
