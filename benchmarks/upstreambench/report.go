package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

// endMark is the line of a page after a table. That before it names the table. What else is there is for people to write.
const endMark = "<!-- end of results -->"

// beginMark is the line of a page before the table.
func (t *table) beginMark() string {
	return fmt.Sprintf("<!-- results of %s: written by `make bench-upstream` -->", t.size())
}

// size says what was measured.
func (t *table) size() string {
	return measure.Grouped(t.pods) + " pods, " + measure.Grouped(t.nodes) + " nodes"
}

// What is measured, as the table calls it.
const (
	untilBound    = "until all pods are bound, s"
	untilGone     = "until all are gone after the deletion, s"
	cpuBound      = "the server's processor time until they are bound, s"
	cpuGone       = "the server's processor time until they are gone, s"
	peakMemory    = "the server's peak of memory (RSS), MB"
	lagP50        = "from an update to a watcher's socket, p50, ms"
	lagP99        = "from an update to a watcher's socket, p99, ms"
	lagCount      = "of so many updates, all of which arrived"
	cpuComponents = "processor time of kube-controller-manager and kube-scheduler, s"
	cpuOthers     = "processor time of other programs, s"
)

var quantities = []string{untilBound, untilGone, cpuBound, cpuGone, peakMemory, lagP50, lagP99, lagCount, cpuComponents, cpuOthers}

// outcome is what was measured once on a side, by quantity.
type outcome struct {
	all   map[string]float64
	store map[string]float64 // how much of it is the store's, where that is a program of its own
}

// table is what was measured with a number of pods.
type table struct {
	pods, nodes int
	outcomes    map[string][]outcome // by side, one of each repetition
}

// text is the table. The ratio says how many times as much kube-apiserver takes as Levelwire.
func (t *table) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s | Levelwire | kube-apiserver with etcd | of that etcd | ratio |\n|-|-:|-:|-:|-:|\n", t.size())
	for _, q := range quantities {
		our, measured := median(t.outcomes[ours], q, func(o outcome) map[string]float64 { return o.all })
		their, compared := median(t.outcomes[theirs], q, func(o outcome) map[string]float64 { return o.all })
		store, apart := median(t.outcomes[theirs], q, func(o outcome) map[string]float64 { return o.store })
		ratio := ""
		if measured && compared && our > 0 && q != cpuOthers && q != lagCount {
			ratio = measure.Times(their / our)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", q, number(our, measured), number(their, compared), number(store, apart), ratio)
	}
	return b.String()
}

// median is that of a quantity; false if it was not measured.
func median(outcomes []outcome, quantity string, of func(outcome) map[string]float64) (value float64, measured bool) {
	var values []float64
	for _, o := range outcomes {
		if v, ok := of(o)[quantity]; ok {
			values = append(values, v)
		}
	}
	return measure.Median(values), len(values) > 0
}

func number(v float64, measured bool) string {
	if !measured {
		return ""
	}
	return measure.Number(v)
}

// write prints a table, and puts it into the report if there is one.
func (p *plan) write(ctx context.Context, t *table) error {
	how := "measured once"
	if p.repeat > 1 {
		how = fmt.Sprintf("medians of %d", p.repeat)
	}
	text := fmt.Sprintf("%s\n%s; %s.\n", t.text(), measure.Describe(ctx, measure.Module{Name: "k8s.io/api", Path: "k8s.io/api"}), how)
	fmt.Print(text)
	if !p.reports() {
		return nil
	}
	return measure.ReplaceBetween(p.report, t.beginMark(), endMark, []byte(text))
}

// reports says whether there is a page to write: both sides are measured.
func (p *plan) reports() bool {
	return p.report != "" && slices.Contains(p.sides, ours) && slices.Contains(p.sides, theirs)
}

// checkReport fails if the page has no place for a table: that is not to be found out when it has been measured.
func (p *plan) checkReport() error {
	if !p.reports() {
		return nil
	}
	page, err := os.ReadFile(p.report)
	if err != nil {
		return process.WrongFlag("report", "%v", err)
	}
	for _, t := range p.tables() {
		if !strings.Contains(string(page), t.beginMark()+"\n") {
			return process.WrongFlag("report", "%s has no line %q, and %q after it, between which the table belongs", p.report, t.beginMark(), endMark)
		}
	}
	return nil
}
