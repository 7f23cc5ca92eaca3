package main

import (
	"fmt"

	chart "github.com/levelwire/levelwire/benchmarks/plot"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

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
