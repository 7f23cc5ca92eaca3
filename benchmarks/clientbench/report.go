package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/levelwire/levelwire/benchmarks/measure"
)

// Results stand between these lines of a report; the rest of it is for people
// to write.
const (
	beginMark = "<!-- results: written by `make bench-client` -->"
	endMark   = "<!-- end of results -->"
)

// titles of the groups, in the order of the report.
var titles = []struct{ group, title string }{
	{"sync", "Initial sync"}, {"compressed", "Initial sync with CompressObjects"}, {"restart", "Restart"}, {"equal", "Many equal objects"}, {"events", "Events from the socket to the handlers"},
	{"machinery", "Events without decoding"}, {"indexer", "Indexer"}, {"idle", "Idle informers"},
}

// write puts the results into the report.
func (p *plan) write(ctx context.Context, all []*comparison) error {
	var b bytes.Buffer
	p.describe(ctx, &b)
	for _, t := range titles {
		written := false
		for _, c := range all {
			if c.group != t.group {
				continue
			}
			if !written {
				fmt.Fprintf(&b, "\n### %s\n", t.title)
				written = true
			}
			c.write(&b)
		}
	}
	if p.report == "" {
		_, err := os.Stdout.Write(b.Bytes())
		return err
	}
	return measure.ReplaceBetween(p.report, beginMark, endMark, b.Bytes())
}

func (p *plan) describe(ctx context.Context, b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s. Pods: %d, events: %d, idle informers: %d; medians of %d.\n",
		measure.Describe(ctx, measure.Module{Name: "client-go", Path: "k8s.io/client-go"}), p.pods, p.events, p.informers, p.repeat)
}

// write is a table of one comparison. The last column is how many times better
// the first library is.
func (c *comparison) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s\n\n| | %s | %s | ratio |\n|-|-:|-:|-:|\n", c.name, c.first.Library, c.second.Library)
	for _, name := range slices.Sorted(maps.Keys(c.got[0][0])) {
		first, second := median(c.got[0], name), median(c.got[1], name)
		ratio := second / first
		if name == "events per s" {
			ratio = first / second
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, measure.Number(first), measure.Number(second), measure.Times(ratio))
	}
}
