package main

import (
	"context"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	chart "github.com/levelwire/levelwire/benchmarks/plot"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// group is a table of the report: rows that belong together, and that are asked
// for together.
type group struct {
	name, title string
	// servers says what the group's rows are measured on.
	servers servers
	// apart: it has a page of its own, and is measured only if it is named.
	apart bool
	rows  []*row
	// limit is what the rows' bare measurements are; default "bare TLS".
	limit string
	// plots draws what the rows have found, into files of docs/contributors/benchmarks.
	plots []plot
}

// servers is what rows need.
type servers int

const (
	// filled: servers that hold the plan's number of pods. All such groups use
	// the same servers one after the other, and may not write to them.
	filled servers = iota
	// empty: servers with nothing in them, new ones for each group and
	// repetition.
	empty
	// own: none. The row starts what it needs, on the side that it gets, when all
	// other groups have been measured.
	own
)

// row is a measurement on each side.
type row struct {
	name string
	// quantities are what the report shows of it, in this order.
	quantities []quantity
	// once: it takes minutes, and is measured once.
	once bool
	// oursOnly: more than upstream can be asked for in the time there is.
	oursOnly bool
	// limit is how long it may take on one side; default two minutes. What it
	// has found until then it says itself, if it heeds its context.
	limit time.Duration
	// measure is done once on each side and in each repetition. Its context ends
	// when a process of the server does.
	measure func(ctx context.Context, b *bench, t *tested.Server) (result, error)
	// bare, if there is one, is the limit that the machine sets: the same bytes
	// by a server that does nothing else. It is given what our server's last
	// measurement was, and returns quantities of the same names.
	bare func(ctx context.Context, b *bench, our result) (result, error)

	outcomes map[string]*outcome // by side; "bare" is one
}

// bare is the side of the limit.
const bare = "bare"

// quantity is something that is measured.
type quantity struct {
	// name, with its unit, is its key in results: "server CPU s".
	name string
	// more: higher is better.
	more bool
	aim  aim
}

// aim is what is to be reached. Zero members are none.
type aim struct {
	ratio   float64 // so many times better than upstream
	atMost  float64 // ours, whatever upstream does
	ofLimit float64 // at most so many times the limit
}

// result is what one measurement found.
type result struct {
	Values map[string]float64 `json:"values"`
	// Curve is when shares of many were done, if a picture shows that.
	Curve []chart.Point `json:"curve,omitempty"`
	// Note is what a reader must know of it: "cut off after 60 s".
	Note string `json:"note,omitempty"`
}

// add adds to the note.
func (r *result) add(note string) {
	if r.Note != "" && note != "" {
		r.Note += "; "
	}
	r.Note += note
}

// outcome is all repetitions on one side.
type outcome struct {
	Results []result `json:"results"`
}

// median of a quantity, and whether there is any.
func (o *outcome) median(name string) (float64, bool) {
	if o == nil {
		return 0, false
	}
	var values []float64
	for _, r := range o.Results {
		if v, ok := r.Values[name]; ok {
			values = append(values, v)
		}
	}
	return measure.Median(values), len(values) > 0
}

// notes of all repetitions, each once.
func (o *outcome) notes() (notes []string) {
	if o == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, r := range o.Results {
		if r.Note != "" && !seen[r.Note] {
			seen[r.Note] = true
			notes = append(notes, r.Note)
		}
	}
	return notes
}

// add notes what a side's measurement found.
func (r *row) add(side string, found result) {
	if r.outcomes == nil {
		r.outcomes = map[string]*outcome{}
	}
	if r.outcomes[side] == nil {
		r.outcomes[side] = &outcome{}
	}
	r.outcomes[side].Results = append(r.outcomes[side].Results, found)
}

// median of a quantity on a side, and whether there is any.
func (r *row) median(side, name string) (float64, bool) { return r.outcomes[side].median(name) }
