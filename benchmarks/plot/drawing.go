package plot

import (
	"bytes"
	"fmt"
	"html"
)

// Places, in pixels.
const (
	width, height = 720.0, 420.0
	left, right   = 76.0, 24.0
	bottom        = 58.0
	legendLine    = 20.0
	charWidth     = 7.0 // of the legend's font, rather too wide than too narrow
)

// colours is how many series have a colour of their own; marks differ, too.
const colours = 6

// style is for light backgrounds, and for dark ones where the reader wants them.
// The colours are told apart by people who do not see all of them.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 16px; font-weight: 600; }
.tick, .value { font-size: 12px; }
.grid { stroke: #8c959f; stroke-opacity: .35; stroke-width: 1; }
.line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.s0 { stroke: #0969da; color: #0969da; }
.s1 { stroke: #c4520a; color: #c4520a; }
.s2 { stroke: #1a7f4b; color: #1a7f4b; }
.s3 { stroke: #a2458c; color: #a2458c; }
.s4 { stroke: #7d6608; color: #7d6608; }
.s5 { stroke: #57606a; color: #57606a; }
.fill { fill: currentColor; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.s0 { stroke: #58a6ff; color: #58a6ff; }
.s1 { stroke: #f0883e; color: #f0883e; }
.s2 { stroke: #4ac786; color: #4ac786; }
.s3 { stroke: #e085cb; color: #e085cb; }
.s4 { stroke: #d4b72c; color: #d4b72c; }
.s5 { stroke: #9da7b3; color: #9da7b3; }
}
</style>`

// drawing is a picture while it is made.
type drawing struct {
	b   bytes.Buffer
	top float64 // where the plotted area begins, below title and legend
}

func newDrawing(title, x, y string, names []string) *drawing {
	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img">`, width, height)
	d.printf(`<title>%s</title>`, escape(title))
	d.printf("%s", style)
	d.text("title", left, 26, "start", title)
	d.legend(names)
	d.text("label", (left+width-right)/2, height-14, "middle", x)
	d.printf(`<text class="label" transform="translate(18 %.1f) rotate(-90)" text-anchor="middle">%s</text>`, (d.top+height-bottom)/2, escape(y))
	return d
}

// legend names the series, in as many lines as they need.
func (d *drawing) legend(names []string) {
	x, y := left, 48.0
	for i, name := range names {
		space := 34 + charWidth*float64(len([]rune(name)))
		if x > left && x+space > width-right {
			x, y = left, y+legendLine
		}
		d.mark(i, x+6, y-4, name)
		d.text("name", x+18, y, "start", name)
		x += space
	}
	d.top = y + 18
}

// vertical draws the vertical axis' ticks and the grid's horizontal lines.
func (d *drawing) vertical(y *axis) {
	for _, t := range y.ticks {
		d.line("grid", left, y.at(t), width-right, y.at(t))
		d.text("tick", left-8, y.at(t)+4, "end", number(t))
	}
}

// mark draws the sign of the i-th series.
func (d *drawing) mark(i int, x, y float64, title string) {
	shape := ""
	switch i % 4 {
	case 0:
		shape = fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="4.2">`, x, y)
		d.printf(`<g class="s%d fill">%s<title>%s</title></circle></g>`, i%colours, shape, escape(title))
		return
	case 1:
		shape = fmt.Sprintf("M%.1f %.1fh8v8h-8z", x-4, y-4)
	case 2:
		shape = fmt.Sprintf("M%.1f %.1fl5 9h-10z", x, y-5)
	case 3:
		shape = fmt.Sprintf("M%.1f %.1fl5 5l-5 5l-5 -5z", x, y-5)
	}
	d.printf(`<g class="s%d fill"><path d="%s"><title>%s</title></path></g>`, i%colours, shape, escape(title))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.printf(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (d *drawing) text(class string, x, y float64, anchor, text string) {
	if text != "" {
		d.printf(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, escape(text))
	}
}

func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(&d.b, format+"\n", args...)
}

func (d *drawing) end() []byte {
	d.printf("</svg>")
	return d.b.Bytes()
}

func escape(text string) string { return html.EscapeString(text) }
