package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/levelwire/levelwire/benchmarks/herd"
	chart "github.com/levelwire/levelwire/benchmarks/plot"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// shown is a side as pictures name it.
type shown struct{ side, name string }

// shownSides are the sides that a group was measured on, its limit last.
func (g *group) shownSides() (sides []shown) {
	for _, s := range []shown{{tested.Ours, "Levelwire"}, {tested.Upstream, "upstream"}, {bare, g.limitName()}} {
		if slices.ContainsFunc(g.rows, func(r *row) bool { return r.outcomes[s.side] != nil }) {
			sides = append(sides, s)
		}
	}
	return sides
}

// lines returns a series for each side: a quantity of each row that has it, at
// the place that the row has.
func (g *group) lines(quantity string, place func(r *row, side string) (float64, bool)) (all []chart.Series) {
	for _, s := range g.shownSides() {
		series := chart.Series{Name: s.name, Dashed: s.side == bare}
		for _, r := range g.rows {
			v, measured := r.median(s.side, quantity)
			x, placed := place(r, s.side)
			if measured && placed {
				series.Points = append(series.Points, chart.Point{X: x, Y: v})
			}
		}
		if len(series.Points) > 0 {
			all = append(all, series)
		}
	}
	return all
}

// bars draws a quantity of the rows named, as far as all sides have it.
func (g *group) bars(title, quantity string, names ...string) ([]byte, error) {
	bars := chart.Bars{Title: title, Y: quantity + ", logarithmic", LogY: true}
	sides := g.shownSides()
	for _, s := range sides {
		bars.Series = append(bars.Series, chart.BarSeries{Name: s.name})
	}
	for _, r := range g.rows {
		var values []float64
		for _, s := range sides {
			if v, ok := r.median(s.side, quantity); ok && v > 0 {
				values = append(values, v)
			}
		}
		if len(values) < len(sides) || !slices.Contains(names, r.name) {
			continue
		}
		bars.Labels = append(bars.Labels, r.name)
		for n, v := range values {
			bars.Series[n].Values = append(bars.Series[n].Values, v)
		}
	}
	return bars.SVG()
}

// listPlots show what a list costs beside its limit.
func listPlots() []plot {
	const title = "One list of all pods: processor time of the server"
	return []plot{{file: "list", title: title, draw: func(g *group) ([]byte, error) {
		return g.bars(title, serverCPU, "JSON", "protobuf, again", "JSON, gzip, again", "protobuf, gzip, again")
	}}}
}

// writePlots show what more writers bring.
func writePlots(writers map[string]float64) []plot {
	const title = "Creates, durable"
	place := func(r *row, _ string) (float64, bool) { n, ok := writers[r.name]; return n, ok }
	return []plot{{file: "write", title: title, draw: func(g *group) ([]byte, error) {
		return chart.Lines{Title: title, X: "writers", Y: createsPerSecond, LogX: true, Series: g.lines(createsPerSecond, place)}.SVG()
	}}}
}

// scalingPlots show how cost grows with the number of pods.
func scalingPlots() []plot {
	place := func(r *row, side string) (float64, bool) { return r.median(side, podsHeld) }
	growth := func(file, title, quantity string, logarithmic bool) plot {
		return plot{file: file, title: title, draw: func(g *group) ([]byte, error) {
			return chart.Lines{Title: title, X: "pods", Y: quantity, LogX: true, LogY: logarithmic, Series: g.lines(quantity, place)}.SVG()
		}}
	}
	return []plot{
		growth("scaling-list", "A JSON list grows with the pods", cpuPerList, true),
		growth("scaling-part", "A list of 200 pods by a label does not grow with the pods", cpuPerPart, true),
		growth("scaling-name", "A list of one pod by its name does not grow with the pods", cpuPerName, true),
		growth("scaling-write", "A create does not grow with the pods", cpuPerCreate, false),
		growth("scaling-start", "A start grows with the pods", startTime, true),
		growth("scaling-memory", "Memory for each pod", residentPerPod, true),
	}
}

// caughtUp shows which share of the informers had caught up when.
func caughtUp(file string, r *row) plot {
	title := "Caught up after: " + r.name
	return plot{file: file, title: title, draw: func(g *group) ([]byte, error) {
		l := chart.Lines{Title: title, X: "seconds after all were let go", Y: "informers that have caught up, %", LogX: true}
		for _, s := range g.shownSides() {
			if o := r.outcomes[s.side]; o != nil && len(o.Results[0].Curve) > 0 {
				l.Series = append(l.Series, chart.Series{Name: s.name, Points: o.Results[0].Curve})
			}
		}
		return l.SVG()
	}}
}

// curve is when each twentieth of a herd had caught up, on a logarithmic axis.
func curve(r herd.Report) (points []chart.Point) {
	const soon = time.Millisecond // as early as the axis goes
	for percent := 5; percent <= 100; percent += 5 {
		if at, ok := r.At(percent); ok {
			points = append(points, chart.Point{X: max(at, soon).Seconds(), Y: float64(percent)})
		}
	}
	return points
}

// sideNames are what pictures call the sides.
var sideNames = []struct{ side, name string }{{tested.Ours, "Levelwire"}, {tested.Upstream, "upstream"}, {bare, "bare TLS server"}}

// fanoutPlot shows what a delivered event costs each side.
func fanoutPlot() plot {
	title := "Server CPU per delivered event of 3 kB, at 20,000 events per second"
	return plot{file: "fanout", title: title, draw: func(g *group) ([]byte, error) {
		bars := chart.Bars{Title: title, Y: "µs per event"}
		values := map[string][]float64{}
		for _, r := range g.rows {
			bars.Labels = append(bars.Labels, shortName(r.name))
			for _, s := range sideNames {
				cost, _ := r.median(s.side, cpuPerEvent) // None is no bar.
				values[s.side] = append(values[s.side], max(cost, 0))
			}
		}
		for _, s := range sideNames {
			bars.Series = append(bars.Series, chart.BarSeries{Name: s.name, Values: values[s.side]})
		}
		return bars.SVG()
	}}
}

// shortName is a row's name where there is little room.
func shortName(name string) string {
	var watchers int
	var kind string
	if n, _ := fmt.Sscanf(name, "%d watchers, %s", &watchers, &kind); n < 2 {
		return fmt.Sprintf("%d", watchers)
	}
	if kind == "a" {
		kind = "connections"
	}
	return fmt.Sprintf("%d, %s", watchers, kind)
}

// dispatchPlots shows how the cost of an event and of a write grow.
func dispatchPlots() []plot {
	return []plot{
		growthPlot("dispatch-interested", "Server CPU per delivered event", "interested watchers", cpuPerEvent, interestedName, interested),
		growthPlot("dispatch-uninterested", "Server CPU per write that no watcher gets", "watchers of other nodes", cpuPerWrite, uninterestedName, uninterested),
	}
}

func growthPlot(file, title, x, quantity, rowName string, counts []int) plot {
	return plot{file: file, title: title, draw: func(g *group) ([]byte, error) {
		lines := chart.Lines{Title: title, X: x, Y: quantity, LogX: true}
		for _, s := range sideNames {
			series := chart.Series{Name: s.name}
			for _, n := range counts {
				for _, r := range g.rows {
					cost, ok := r.median(s.side, quantity)
					if ok && r.name == fmt.Sprintf(rowName, n) {
						series.Points = append(series.Points, chart.Point{X: float64(n), Y: max(cost, 0)})
					}
				}
			}
			if len(series.Points) > 0 {
				lines.Series = append(lines.Series, series)
			}
		}
		return lines.SVG()
	}}
}
