package differential

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// report is what a comparison found.
type report struct {
	asked    map[string]int           // requests by kind
	differed map[string]bool          // requests, by name
	byKind   map[string]map[class]int // differences that are not declared
	groups   map[groupKey]*group      // likewise
	declared map[*declaration]int     // how often each applied
	each     []difference             // those of groups, in the order of the requests
}

type groupKey struct {
	class class
	at    string
}

// group is the differences of one class at one place, whatever the kind.
type group struct {
	groupKey
	count   int
	kinds   map[string]int
	example difference
}

func newReport() *report {
	return &report{
		asked: map[string]int{}, differed: map[string]bool{}, byKind: map[string]map[class]int{},
		groups: map[groupKey]*group{}, declared: map[*declaration]int{},
	}
}

// add counts a request and its differences, but for those that are declared.
func (r *report) add(request *request, found []difference, declared declarations) {
	kind := request.kind.String()
	r.asked[kind]++
	counted := map[class]bool{}
	for _, d := range found {
		if known := declared.find(&d); known != nil {
			r.declared[known]++
			continue
		}
		r.differed[d.request] = true
		if r.byKind[kind] == nil {
			r.byKind[kind] = map[class]int{}
		}
		if !counted[d.class] { // a request counts once in a class
			counted[d.class] = true
			r.byKind[kind][d.class]++
		}
		r.group(d)
		r.each = append(r.each, d)
	}
}

// list writes every difference that is not declared in a line of its own: what differs,
// the request, where, what we answer, what the judge answers. Tabs stand between them.
func (r *report) list(w io.Writer) {
	for _, d := range r.each {
		fmt.Fprintf(w, "%s\t%s\t%q\t%q\t%q\n", d.class, d.asked(), d.at, d.ours, d.judge)
	}
}

func (r *report) group(d difference) {
	key := groupKey{d.class, d.at}
	g := r.groups[key]
	if g == nil {
		g = &group{groupKey: key, kinds: map[string]int{}, example: d}
		r.groups[key] = g
	}
	g.count++
	g.kinds[d.kind]++
	if len(d.asked()) < len(g.example.asked()) {
		g.example = d
	}
}

// undeclared is how many requests are answered differently without a declaration.
func (r *report) undeclared() int { return len(r.differed) }

// unused returns the declarations that no difference needed.
func (r *report) unused(declared declarations) declarations {
	return slices.DeleteFunc(slices.Clone(declared), func(d *declaration) bool { return r.declared[d] > 0 })
}

func (r *report) total() int {
	n := 0
	for _, count := range r.asked {
		n += count
	}
	return n
}

// write writes the counts and, the largest first, at most most groups.
func (r *report) write(w io.Writer, most int) {
	fmt.Fprintf(w, "%d requests, %d answered differently\n", r.total(), r.undeclared())
	r.writeCounts(w)
	groups := slices.SortedFunc(maps.Values(r.groups), func(a, b *group) int {
		return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at))
	})
	fmt.Fprintf(w, "\n%d groups\n", len(groups))
	for _, g := range groups[:min(most, len(groups))] {
		g.write(w)
	}
	if n := len(groups) - most; n > 0 {
		fmt.Fprintf(w, "\nand %d smaller groups\n", n)
	}
}

func (r *report) writeCounts(w io.Writer) {
	sums := map[class]int{}
	for _, counts := range r.byKind {
		for class, n := range counts {
			sums[class] += n
		}
	}
	for _, class := range classes {
		fmt.Fprintf(w, "%7d  %s\n", sums[class], class)
	}
	fmt.Fprintf(w, "\n%-60s %8s", "kind", "asked")
	for _, class := range classes {
		fmt.Fprintf(w, " %8.8s", strings.NewReplacer("other ", "", " by ours only", "").Replace(string(class)))
	}
	fmt.Fprintln(w)
	for _, kind := range slices.Sorted(maps.Keys(r.asked)) {
		fmt.Fprintf(w, "%-60s %8d", kind, r.asked[kind])
		for _, class := range classes {
			fmt.Fprintf(w, " %8d", r.byKind[kind][class])
		}
		fmt.Fprintln(w)
	}
}

func (g *group) write(w io.Writer) {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(g.kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, g.kinds[kind]))
	}
	fmt.Fprintf(w, "\n%d  %s: %s\n", g.count, g.class, cut(g.at))
	fmt.Fprintf(w, "    kinds: %s\n", cut(strings.Join(kinds, ", ")))
	fmt.Fprintf(w, "    e.g.   %s\n", cut(g.example.asked()))
	fmt.Fprintf(w, "    ours:  %s\n    judge: %s\n", cut(g.example.ours), cut(g.example.judge))
}

// cut keeps a line readable.
func cut(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
