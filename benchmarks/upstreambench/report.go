package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/benchmarks/measure"
)

// Results stand between these lines of a page; the rest of it is for people to write.
const (
	beginMark = "<!-- results: written by `make bench-upstream` -->"
	endMark   = "<!-- end of results -->"
)

// What is measured, as the table calls it.
const (
	untilBound    = "until all pods are bound, s"
	untilGone     = "until all are gone after the deletion, s"
	cpuBound      = "the server's processor time until they are bound, s"
	cpuGone       = "the server's processor time until they are gone, s"
	peakMemory    = "the server's peak of memory (RSS), MB"
	lagP50        = "from an update to a watcher's socket, p50, ms"
	lagP99        = "from an update to a watcher's socket, p99, ms"
	cpuComponents = "processor time of kube-controller-manager and kube-scheduler, s"
	cpuOthers     = "processor time of other programs, s"
)

var quantities = []string{untilBound, untilGone, cpuBound, cpuGone, peakMemory, lagP50, lagP99, cpuComponents, cpuOthers}

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
	fmt.Fprintf(&b, "\n| %s pods, %s nodes | Levelwire | kube-apiserver with etcd | of that etcd | ratio |\n|-|-:|-:|-:|-:|\n", measure.Grouped(t.pods), measure.Grouped(t.nodes))
	for _, q := range quantities {
		our, measured := median(t.outcomes[ours], q, func(o outcome) map[string]float64 { return o.all })
		their, compared := median(t.outcomes[theirs], q, func(o outcome) map[string]float64 { return o.all })
		store, apart := median(t.outcomes[theirs], q, func(o outcome) map[string]float64 { return o.store })
		ratio := ""
		if measured && compared && our > 0 && q != cpuOthers {
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

// write prints all tables, and puts them into the report if both sides were measured.
func (p *plan) write(ctx context.Context, tables []*table) error {
	var b strings.Builder
	for _, t := range tables {
		b.WriteString(t.text())
	}
	how := "measured once"
	if p.repeat > 1 {
		how = fmt.Sprintf("medians of %d", p.repeat)
	}
	fmt.Fprintf(&b, "\n%s; %s.\n", measure.Describe(ctx, measure.Module{Name: "k8s.io/api", Path: "k8s.io/api"}), how)
	fmt.Print(b.String())
	if p.report == "" || !slices.Contains(p.sides, ours) || !slices.Contains(p.sides, theirs) {
		return nil
	}
	return measure.ReplaceBetween(p.report, beginMark, endMark, []byte(b.String()))
}
