package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"strings"
	"time"
)

const (
	width     = 1200.0
	rowHeight = 17
	top       = 34
	charWidth = 6.3   // of the font below
	smallest  = 0.005 // share of all samples below which a frame is left out
)

// draw writes the picture: the root at the bottom, as the flames go up.
func draw(out io.Writer, title string, root *frame) error {
	w := bufio.NewWriter(out)
	least := max(1, int64(float64(root.value)*smallest))
	rows := root.depth(least)
	height := top + rows*rowHeight + 6
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="Verdana,sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="#fdfdf8"/>`+"\n")
	fmt.Fprintf(w, `<text x="%.0f" y="21" text-anchor="middle" font-size="15">%s (%v of CPU)</text>`+"\n",
		width/2, html.EscapeString(title), time.Duration(root.value).Round(10*time.Millisecond))
	p := painter{w: w, total: root.value, least: least, floor: height - 6}
	p.paint(root, 0, 0)
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

type painter struct {
	w            io.Writer
	total, least int64
	floor        int
}

// paint draws a frame whose left edge is after nanoseconds from the left, and what
// it calls above it.
func (p *painter) paint(f *frame, after int64, row int) {
	scale := width / float64(max(p.total, 1))
	x, size := float64(after)*scale, float64(f.value)*scale
	y := p.floor - (row+1)*rowHeight
	fmt.Fprintf(p.w, `<g><title>%s: %.1f %%</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" rx="1"/>`,
		html.EscapeString(f.name), 100*float64(f.value)/float64(max(p.total, 1)), x, y, size, rowHeight-1, colour(f.name))
	if text := fit(short(f.name), size); text != "" {
		fmt.Fprintf(p.w, `<text x="%.1f" y="%d">%s</text>`, x+3, y+12, html.EscapeString(text))
	}
	fmt.Fprintln(p.w, "</g>")
	for _, k := range f.order() {
		if k.value >= p.least {
			p.paint(k, after, row+1)
		}
		after += k.value
	}
}

// short drops the path of the package: the picture's colours show whose it is.
func short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// fit cuts a text to a width, or drops it if little would be left.
func fit(text string, size float64) string {
	room := int((size - 6) / charWidth)
	switch {
	case room < 3:
		return ""
	case len(text) <= room:
		return text
	}
	return text[:room-2] + ".."
}

// colour is by the owner of the code: ours green, TLS and the kernel blue,
// garbage collection and scheduling grey, everything else warm.
func colour(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	shade := int(h.Sum32() % 40)
	switch {
	case strings.HasPrefix(name, "github.com/levelwire/"):
		return fmt.Sprintf("rgb(%d,%d,%d)", 110+shade, 190+shade, 110+shade)
	case strings.HasPrefix(name, "crypto/"), strings.HasPrefix(name, "internal/runtime/syscall"), strings.HasPrefix(name, "syscall."):
		return fmt.Sprintf("rgb(%d,%d,%d)", 120+shade, 160+shade, 215+shade)
	case strings.HasPrefix(name, "runtime."):
		return fmt.Sprintf("rgb(%d,%d,%d)", 185+shade, 185+shade, 185+shade)
	}
	return fmt.Sprintf("rgb(%d,%d,%d)", 225+shade/2, 140+shade, 70+shade)
}
