package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
	}
}

func TestLines(t *testing.T) {
	svg, err := Lines{
		Title: `CPU <& "time">`, X: "watchers", Y: "µs", LogX: true,
		Series: []Series{
			{Name: "ours", Points: []Point{{10, 5}, {100, 6}, {1000, 7}}},
			{Name: "a limit", Points: []Point{{10, 2}, {1000, 2}}, Dashed: true},
		},
	}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	// Powers of ten are equally far from each other, and more is further up.
	lines := regexp.MustCompile(`<polyline class="line s0" points="76.0,(\S+) 386.0,(\S+) 696.0,(\S+)"/>`).FindSubmatch(svg)
	if lines == nil {
		t.Fatalf("no line over the whole width in %s", svg)
	}
	var ys [3]float64
	for i := range ys {
		if _, err := fmt.Sscan(string(lines[i+1]), &ys[i]); err != nil {
			t.Fatal(err)
		}
	}
	if ys[0] <= ys[1] || ys[1] <= ys[2] || math.Abs(ys[0]+ys[2]-2*ys[1]) > 0.2 {
		t.Errorf("5, 6 and 7 are at %v", ys)
	}
	for _, want := range []string{"CPU &lt;&amp;", ">watchers<", ">µs<", ">ours<", ">a limit<", "stroke-dasharray", "ours: 6 at 100", "prefers-color-scheme: dark"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is not in it", want)
		}
	}
}

func TestBars(t *testing.T) {
	b := Bars{
		Title: "writers", Y: "per second", LogY: true, Labels: []string{"1", "16"},
		Series: []BarSeries{{"ours", []float64{3000, 10000}}, {"upstream", []float64{345, 710}}},
	}
	svg, err := b.SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	if n := strings.Count(string(svg), "<rect "); n != 4 {
		t.Errorf("%d bars", n)
	}
	if !strings.Contains(string(svg), "upstream, 16: 710") || !strings.Contains(string(svg), ">10k</text>") {
		t.Errorf("values are missing: %s", svg)
	}
	b.Series[1].Values = b.Series[1].Values[:1]
	if _, err := b.SVG(); err == nil {
		t.Error("a bar is missing, and SVG returns no error")
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for name, l := range map[string]Lines{
		"no points":     {Series: []Series{{Name: "x"}}},
		"zero of a log": {LogY: true, Series: []Series{{Points: []Point{{1, 0}}}}},
		"negative":      {Series: []Series{{Points: []Point{{1, -1}}}}},
		"no number":     {Series: []Series{{Points: []Point{{1, math.NaN()}}}}},
		"infinite":      {Series: []Series{{Points: []Point{{math.Inf(1), 1}}}}},
	} {
		if svg, err := l.SVG(); err == nil {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		log    bool
		values []float64
		want   string
	}{
		{false, []float64{0}, "0 0.2 0.4 0.6 0.8 1"},
		{false, []float64{3, 7}, "0 2 4 6 8"},
		{false, []float64{10}, "0 2 4 6 8 10"},
		{false, []float64{1_234_567}, "0 500k 1M 1.5M"},
		{true, []float64{10, 1000}, "10 20 50 100 200 500 1000"},
		{true, []float64{10, 10_000}, "10 100 1000 10k"},
		{true, []float64{345, 10_700}, "100 1000 10k 100k"},
		{true, []float64{3, 7}, "2 5 10"},
		{true, []float64{100}, "100 200"},
	} {
		a, err := newAxis(c.log, 0, 1, c.values)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range a.ticks {
			got = append(got, number(v))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v (logarithmic: %t) has ticks at %v, want %s", c.values, c.log, got, c.want)
		}
	}
}

func FuzzAxis(f *testing.F) {
	f.Add(true, 1.0, 1000.0)
	f.Add(false, 0.0, 1e-300)
	f.Fuzz(func(t *testing.T, log bool, v, w float64) {
		a, err := newAxis(log, 100, 0, []float64{v, w})
		if err != nil || max(v, w) > 1e15 || max(v, w) < 1e-15 || log && min(v, w) < 1e-15 {
			return // It is not measured.
		}
		if n := len(a.ticks); n < 2 || n > 3*mostTicks || !slices.IsSorted(a.ticks) {
			t.Errorf("%g to %g: ticks at %v", v, w, a.ticks)
		}
		for _, v := range append(a.ticks, v, w) {
			if p := a.at(v); !(p >= -0.01 && p <= 100.01) {
				t.Errorf("%g is at %g of an axis from %g to %g", v, p, a.low, a.high)
			}
		}
	})
}

func ExampleLines() {
	svg, err := Lines{
		Title: "one list", X: "pods", Y: "s", LogX: true, LogY: true,
		Series: []Series{{Name: "ours", Points: []Point{{1000, 0.01}, {100_000, 1}}}},
	}.SVG()
	fmt.Println(len(svg) > 0, err)
	// Output: true <nil>
}
