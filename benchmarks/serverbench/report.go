package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// plot draws one picture of what a group's rows have found.
type plot struct {
	file  string // in the report's folder, without .svg
	title string // what it shows, for readers that cannot see it
	draw  func(g *group) ([]byte, error)
}

// write prints all results, puts those of both sides into the report, and draws
// its pictures.
func (p *plan) write(ctx context.Context, chosen []*group) error {
	both := slices.Contains(p.sides, tested.Ours) && slices.Contains(p.sides, tested.Upstream)
	about := measure.Describe(ctx, measure.Module{Name: "k8s.io/apiserver", Path: "k8s.io/apiserver"}, measure.Module{Name: "etcd", Path: "go.etcd.io/etcd/server/v3"})
	for _, g := range chosen {
		how := "measured once"
		if p.repeat > 1 {
			how = fmt.Sprintf("medians of %d", p.repeat)
		}
		if g.apart {
			how = fmt.Sprintf("informers: %d, %d of them of all pods; measured once", p.informers, p.everything)
		}
		text := g.text(fmt.Sprintf("%s; pods: %d; %s.", about, p.pods, how))
		fmt.Printf("## %s\n%s\n", g.title, text)
		if p.report == "" || !both {
			continue
		}
		begin, end := fmt.Sprintf("<!-- results: %s -->", g.name), fmt.Sprintf("<!-- end: %s -->", g.name)
		images, err := p.draw(g)
		if err != nil {
			return fmt.Errorf("plots of %s: %w", g.name, err)
		}
		if err := measure.ReplaceBetween(p.report, begin, end, []byte(text+images)); err != nil {
			return err
		}
	}
	return p.save(about, chosen)
}

// folder is where the report's pictures are.
func (p *plan) folder() string { return strings.TrimSuffix(p.report, filepath.Ext(p.report)) }

// draw writes a group's pictures beside the report, and returns what shows them
// in it.
func (p *plan) draw(g *group) (images string, err error) {
	for _, plot := range g.plots {
		svg, err := plot.draw(g)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(p.folder(), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(p.folder(), plot.file+".svg"), svg, 0o644); err != nil {
			return "", err
		}
		images += fmt.Sprintf("\n![%s](%s/%s.svg)\n", plot.title, filepath.Base(p.folder()), plot.file)
	}
	return images, nil
}

// save writes every single measurement.
func (p *plan) save(about string, chosen []*group) error {
	if p.data == "" {
		return nil
	}
	all := map[string]map[string]map[string]*outcome{}
	for _, g := range chosen {
		all[g.name] = map[string]map[string]*outcome{}
		for _, r := range g.rows {
			all[g.name][r.name] = r.outcomes
		}
	}
	content, err := json.MarshalIndent(map[string]any{"about": about, "pods": p.pods, "groups": all}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(p.data, content, 0o644)
}

// text is a group's table. The ratio is how many times better ours is than
// upstream, the last column how many times ours costs what the limit does.
func (g *group) text(about string) string {
	var b bytes.Buffer
	limits := slices.ContainsFunc(g.rows, func(r *row) bool { return r.outcomes[bare] != nil })
	head := []string{"", "", "Levelwire", tested.Upstream, "ratio", "aim"}
	if limits {
		head = append(head, g.limitName(), "Levelwire / "+g.limitName())
	}
	fmt.Fprintf(&b, "\n| %s |\n|-|-|%s\n", strings.Join(head, " | "), strings.Repeat("-:|", len(head)-2))
	var notes []string
	for _, r := range g.rows {
		for n, q := range r.quantities {
			cells := append([]string{"", q.name}, r.cells(q, limits)...)
			if n == 0 {
				cells[0] = r.name
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		for _, side := range []string{tested.Ours, tested.Upstream, bare} {
			for _, note := range r.outcomes[side].notes() {
				notes = append(notes, fmt.Sprintf("%s, %s: %s.", r.name, side, note))
			}
		}
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "\n- %s", note)
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s\n", about)
	return b.String()
}

// unfinished: upstream did less than ours until it was cut off, and so used less
// than what the same would have taken.
func (r *row) unfinished() bool {
	our, counted := r.median(tested.Ours, finished)
	their, compared := r.median(tested.Upstream, finished)
	return counted && compared && their < our
}

// limitName is what its limit is.
func (g *group) limitName() string { return cmp.Or(g.limit, "bare TLS") }

// cells are the numbers of a quantity.
func (r *row) cells(q quantity, limits bool) []string {
	shown := func(v float64, ok bool) string {
		if !ok {
			return ""
		}
		return measure.Number(v)
	}
	our, measured := r.median(tested.Ours, q.name)
	their, compared := r.median(tested.Upstream, q.name)
	limit, limited := r.median(bare, q.name)
	cells := []string{shown(our, measured), shown(their, compared), "", q.aim.text()}
	if q.hasRatio() && measured && compared && our > 0 && their > 0 {
		cells[2] = measure.Times(q.ratio(our, their))
		if r.unfinished() && !q.more {
			cells[2] = "> " + cells[2]
		}
	}
	if measured && !q.aim.met(q, our, their, compared, limit, limited) {
		cells[3] += " missed"
	}
	if !limits {
		return cells
	}
	cells = append(cells, shown(limit, limited), "")
	if limited && measured && limit > 0 && q.name != megabytes {
		cells[len(cells)-1] = measure.Times(our / limit)
		if q.more {
			cells[len(cells)-1] = measure.Times(limit / our)
		}
	}
	return cells
}

// hasRatio: for what both sides have equally, for what the client uses, and for
// what may well be nothing, a ratio would say nothing about the server.
func (q quantity) hasRatio() bool {
	return !slices.Contains([]string{megabytes, clientCPU, finished, growthMB, eventBytes, clientPerEvent, resumed, expiredAnswers}, q.name)
}

// ratio is how many times better ours is.
func (q quantity) ratio(our, their float64) float64 {
	if q.more {
		return our / their
	}
	return their / our
}

// text is how the report writes an aim.
func (a aim) text() string {
	var parts []string
	if a.ratio > 0 {
		parts = append(parts, fmt.Sprintf("%g×", a.ratio))
	}
	if a.atMost > 0 {
		parts = append(parts, "≤ "+measure.Number(a.atMost))
	}
	if a.ofLimit > 0 {
		parts = append(parts, fmt.Sprintf("≤ %g× bare", a.ofLimit))
	}
	return strings.Join(parts, ", ")
}

// met reports whether what was measured reaches the aim; what was not measured
// misses nothing.
func (a aim) met(q quantity, our, their float64, compared bool, limit float64, limited bool) bool {
	return (a.ratio == 0 || !compared || our == 0 || q.ratio(our, their) >= a.ratio) &&
		(a.atMost == 0 || our <= a.atMost) &&
		(a.ofLimit == 0 || !limited || our <= a.ofLimit*limit)
}

// text is a measurement in one line.
func (r result) text(of *row) string {
	var parts []string
	for _, q := range of.quantities {
		if v, ok := r.Values[q.name]; ok {
			parts = append(parts, q.name+" "+measure.Number(v))
		}
	}
	if r.Note != "" {
		parts = append(parts, r.Note)
	}
	return strings.Join(parts, ", ")
}
