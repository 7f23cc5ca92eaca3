package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// TestReport: medians, ratios, aims and limits are where a reader looks for them.
func TestReport(t *testing.T) {
	r := &row{name: "JSON", quantities: []quantity{
		{name: serverCPU, aim: aim{ratio: 12, ofLimit: 2}}, {name: megabytes}, {name: createsPerSecond, more: true, aim: aim{ratio: 4}},
	}}
	for _, v := range []float64{3, 1, 2} {
		r.add(tested.Ours, result{Values: map[string]float64{serverCPU: v, megabytes: 580, createsPerSecond: 900}})
		r.add(tested.Upstream, result{Values: map[string]float64{serverCPU: 10 * v, createsPerSecond: 100}, Note: "cut off after 60 s"})
		r.add(bare, result{Values: map[string]float64{serverCPU: v / 2}})
	}
	g := &group{name: "list", title: "Lists", rows: []*row{r}}
	text := g.text("about it")
	for _, want := range []string{
		"| JSON | server CPU s | 2.00 | 20.0 | 10× | 12×, ≤ 2× bare missed | 1.00 | 2.0× |\n",
		"|  | received MB | 580 |  |  |  |  |  |\n",
		"|  | creates per s | 900 | 100 | 9.0× | 4× |  |  |\n",
		"\n- JSON, upstream: cut off after 60 s.\n",
		"\nabout it\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "cut off"); n != 1 {
		t.Errorf("a note is there %d times:\n%s", n, text)
	}
}

// TestUnfinishedWork: a ratio to work that was cut off is a bound.
func TestUnfinishedWork(t *testing.T) {
	for their, want := range map[float64]string{0: "> 10×", 15: "> 10×", 16: "10×"} {
		q := quantity{name: serverCPU}
		r := &row{quantities: []quantity{{name: finished, more: true}, q}}
		r.add(tested.Ours, result{Values: map[string]float64{finished: 16, serverCPU: 10}})
		r.add(tested.Upstream, result{Values: map[string]float64{finished: their, serverCPU: 100}})
		if got := r.cells(q, false)[2]; got != want {
			t.Errorf("%g finished: %q, want %q", their, got, want)
		}
	}
}

func TestAims(t *testing.T) {
	for _, test := range []struct {
		aim              aim
		more             bool
		our, their, bare float64 // 0: not measured
		want             bool
	}{
		{aim: aim{}, our: 1, want: true},
		{aim: aim{ratio: 5}, our: 1, their: 5, want: true},
		{aim: aim{ratio: 5}, our: 1, their: 4, want: false},
		{aim: aim{ratio: 5}, our: 1, want: true},
		{aim: aim{ratio: 5}, more: true, our: 5, their: 1, want: true},
		{aim: aim{ratio: 5}, more: true, our: 4, their: 1, want: false},
		{aim: aim{atMost: 200}, our: 200, want: true},
		{aim: aim{atMost: 200}, our: 201, want: false},
		{aim: aim{ofLimit: 2}, our: 2, bare: 1, want: true},
		{aim: aim{ofLimit: 2}, our: 3, bare: 1, want: false},
		{aim: aim{ofLimit: 2}, our: 3, want: true},
	} {
		got := test.aim.met(quantity{more: test.more}, test.our, test.their, test.their != 0, test.bare, test.bare != 0)
		if got != test.want {
			t.Errorf("%+v: met %t, want %t", test, got, test.want)
		}
	}
}

// TestReportHasPlaces: a group without its marks fails only when all has been measured.
func TestReportHasPlaces(t *testing.T) {
	pages := ""
	for _, name := range []string{"benchmarks.md", "benchmarks-storm.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "contributors", name))
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	for _, g := range groups(&plan{}) {
		for _, mark := range []string{"<!-- results: " + g.name + " -->\n", "<!-- end: " + g.name + " -->"} {
			if !strings.Contains(pages, mark) {
				t.Errorf("no page has the line %q, between which and its end the results of %s belong", mark, g.title)
			}
		}
	}
}
