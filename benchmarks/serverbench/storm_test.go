package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/benchmarks/herd"
	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/stormclients"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// TestStormChanges: what storms do to pods does not get in each other's way, and
// there are as many pods as that takes.
func TestStormChanges(t *testing.T) {
	for _, pods := range []int{5000, 40_000} {
		seen := map[string]bool{}
		numberOf := map[string]int{}
		for i := range pods {
			numberOf[podPath(i)] = i
		}
		for number := range 3 {
			s := storm{changed: pods / 100, deleted: pods / 400, number: number}
			var deleted int
			for _, requests := range [][]load.Request{s.before(pods), s.meanwhile(pods), s.after(pods)} {
				if len(requests) == 0 {
					t.Errorf("%d pods: nothing is to be changed", pods)
				}
				for _, r := range requests {
					path, _, _ := strings.Cut(r.Path, "?")
					if _, exists := numberOf[path]; !exists || seen[path] {
						t.Fatalf("%d pods: %s is not there, or has been changed before", pods, r.Path)
					}
					seen[path] = true
					if r.Method == "DELETE" {
						deleted++
					}
				}
			}
			if deleted != s.deleted {
				t.Errorf("%d deleted, want %d", deleted, s.deleted)
			}
		}
	}
}

func TestNodesOf(t *testing.T) {
	nodes := stormclients.NodesOf(1500, 5000)
	count := map[string]int{}
	for _, n := range nodes {
		count[n]++
	}
	if len(nodes) != 1500 || len(count) != 1000 || slices.Max([]int{count[nodes[0]], count[nodes[999]]}) != 2 {
		t.Errorf("%d informers on %d nodes", len(nodes), len(count))
	}
}

func TestParseResumes(t *testing.T) {
	const metrics = `# HELP levelwire_cache_resumes_total Watches.
levelwire_cache_resumes_total{group="",history="coalesced",resource="nodes"} 1
levelwire_cache_resumes_total{group="",history="coalesced",resource="pods"} 1.2e+03
levelwire_cache_resumes_total{group="",history="exact",resource="pods"} 6
levelwire_cache_resumes_total{group="example.org",history="exact",resource="pods"} 9
`
	if resumes := parseResumes(metrics); resumes["coalesced"] != 1200 || resumes["exact"] != 6 || len(resumes) != 2 {
		t.Errorf("%v", resumes)
	}
}

// TestStormReport: what clients have seen becomes a table and a picture. A missing
// client is neither counted nor drawn.
func TestStormReport(t *testing.T) {
	after := make([]time.Duration, 99)
	for i := range after {
		after[i] = time.Duration(i+1) * 10 * time.Millisecond
	}
	s := stormclients.Seen{
		Herd:      herd.Report{Informers: 100, Converged: 99, After: after, Counts: herd.Counts{Streams: 3, Lists: 2, Bytes: 5e6, Errors: map[string]int64{"EOF": 4}}},
		Libraries: map[string]stormclients.LibraryReport{stormclients.ClientGo: {Equal: true, After: time.Second, Lists: 1}, stormclients.OurLibrary: {Differences: 1}},
	}
	if s.Done() || !strings.HasPrefix(s.Late(), "1 of 100 informers, "+stormclients.OurLibrary) {
		t.Errorf("done, or late are %q", s.Late())
	}
	found := result{Values: map[string]float64{}}
	describe(s, &found)
	for name, want := range map[string]float64{finished: 99, untilHalf: 0.5, untilMost: 0.99, listsBegun: 5, sentMB: 5, stormclients.ClientGo + ": " + untilCaughtUp: 1, stormclients.OurLibrary + ": " + differences: 1} {
		if got, ok := found.Values[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{untilAll, stormclients.OurLibrary + ": " + untilCaughtUp} {
		if v, ok := found.Values[name]; ok {
			t.Errorf("%s is %v, but not all had", name, v)
		}
	}
	if !strings.Contains(found.Note, `"EOF" 4 times`) || len(found.Curve) != 19 {
		t.Errorf("note %q, %d points", found.Note, len(found.Curve))
	}
	g := stormGroup(&plan{pods: 5000})
	g.rows[0].add(tested.Ours, found)
	g.rows[0].add(tested.Upstream, found)
	svg, err := g.plots[0].draw(g)
	if err != nil || !strings.Contains(string(svg), "<polyline") {
		t.Errorf("%v: %.200s", err, svg)
	}
}
