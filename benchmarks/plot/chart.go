package plot

import (
	"fmt"
	"strings"
)

// Point is a measurement.
type Point struct{ X, Y float64 }

// Series is points that belong together, in ascending order of X.
type Series struct {
	Name   string
	Points []Point
	// Dashed lines are for what is no measurement of its own: a limit, an aim.
	Dashed bool
}

// Lines is a chart of series as lines.
type Lines struct {
	Title, X, Y string // what it shows, and what its axes are, with their units
	LogX, LogY  bool
	Series      []Series
}

// SVG draws it. There must be a point, no value may be negative, and none zero
// on a logarithmic axis.
func (l Lines) SVG() ([]byte, error) {
	var xs, ys []float64
	names := make([]string, 0, len(l.Series))
	for _, s := range l.Series {
		names = append(names, s.Name)
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	d := newDrawing(l.Title, l.X, l.Y, names)
	x, err := newAxis(l.LogX, left, width-right, xs)
	if err != nil {
		return nil, fmt.Errorf("%s: X: %w", l.Title, err)
	}
	y, err := newAxis(l.LogY, height-bottom, d.top, ys)
	if err != nil {
		return nil, fmt.Errorf("%s: Y: %w", l.Title, err)
	}
	d.vertical(&y)
	for _, t := range x.ticks {
		d.line("grid", x.at(t), d.top, x.at(t), height-bottom)
		d.text("tick", x.at(t), height-bottom+18, "middle", number(t))
	}
	for i, s := range l.Series {
		d.series(i, s, &x, &y)
	}
	return d.end(), nil
}

// series draws one line with a mark at each point. A viewer shows its values when
// the pointer is on it.
func (d *drawing) series(i int, s Series, x, y *axis) {
	places := make([]string, 0, len(s.Points))
	for _, p := range s.Points {
		places = append(places, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(p.Y)))
	}
	dash := ""
	if s.Dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	d.printf(`<polyline class="line s%d"%s points="%s"/>`, i%colours, dash, strings.Join(places, " "))
	for _, p := range s.Points {
		d.mark(i, x.at(p.X), y.at(p.Y), fmt.Sprintf("%s: %s at %s", s.Name, number(p.Y), number(p.X)))
	}
}

// BarSeries is a bar in each group.
type BarSeries struct {
	Name   string
	Values []float64 // one for each label
}

// Bars is a chart of groups of bars.
type Bars struct {
	Title, Y string
	// LogY is for values of very different size; the length of a bar then says
	// little, and its number, which stands above it, everything.
	LogY   bool
	Labels []string // of the groups
	Series []BarSeries
}

// SVG draws it. Every series must have a value for every label, none negative,
// and none zero on a logarithmic axis.
func (b Bars) SVG() ([]byte, error) {
	var values []float64
	names := make([]string, 0, len(b.Series))
	for _, s := range b.Series {
		names = append(names, s.Name)
		values = append(values, s.Values...)
		if len(s.Values) != len(b.Labels) {
			return nil, fmt.Errorf("%s: %s has %d values for %d labels", b.Title, s.Name, len(s.Values), len(b.Labels))
		}
	}
	d := newDrawing(b.Title, "", b.Y, names)
	y, err := newAxis(b.LogY, height-bottom, d.top, values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Title, err)
	}
	d.vertical(&y)
	group := (width - left - right) / float64(len(b.Labels))
	bar := group * 0.8 / float64(len(b.Series))
	for g, label := range b.Labels {
		start := left + group*(float64(g)+0.1)
		d.text("tick", start+group*0.4, height-bottom+18, "middle", label)
		for i, s := range b.Series {
			v := s.Values[g]
			x, top := start+bar*float64(i), y.at(v)
			d.printf(`<rect class="s%d fill" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s, %s: %s</title></rect>`,
				i%colours, x, top, bar*0.94, height-bottom-top, escape(s.Name), escape(label), number(v))
			d.text("value", x+bar*0.47, top-4, "middle", number(v))
		}
	}
	return d.end(), nil
}
