package watchcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// randomPod is one of 600 pods, with labels and fields that many others share.
func randomPod(random *rand.Rand) pod {
	p := pod{
		Namespace: fmt.Sprint("ns-", random.IntN(3)), Name: fmt.Sprintf("p-%03d", random.IntN(200)),
		Node: fmt.Sprint("n", random.IntN(40)), Phase: []string{"Pending", "Running", ""}[random.IntN(3)],
	}
	switch random.IntN(4) {
	case 0: // no labels
	case 1:
		p.Labels = map[string]string{"app": fmt.Sprint("a", random.IntN(50))}
	default:
		p.Labels = map[string]string{"app": fmt.Sprint("a", random.IntN(50)), "rank": fmt.Sprint(random.IntN(30)), "empty": ""}
	}
	return p
}

// randomSelectors are of every operator.
func randomSelectors(random *rand.Rand) (namespace, name, label, field string) {
	app := fmt.Sprint("a", random.IntN(52))
	label = []string{
		"", "", "app=" + app, "app in (" + app + ",a1,a2)", "app,app!=" + app, "!app", "rank>27", "rank<3,app=" + app,
		"empty=", "app notin (a1,a2,a3)", "missing", "empty,rank=7",
	}[random.IntN(12)]
	node := fmt.Sprint("n", random.IntN(42))
	field = []string{
		"", "", "spec.nodeName=" + node, "spec.nodeName!=" + node, "status.phase=", "status.phase=Running,spec.nodeName=" + node,
		fmt.Sprintf("metadata.name=p-%03d", random.IntN(210)), "metadata.name!=p-001,spec.nodeName=" + node, "metadata.namespace=ns-1,spec.nodeName=" + node,
	}[random.IntN(9)]
	if random.IntN(3) == 0 {
		namespace = fmt.Sprint("ns-", random.IntN(4))
	}
	if random.IntN(10) == 0 {
		name = fmt.Sprintf("p-%03d", random.IntN(210))
	}
	return namespace, name, label, field
}

// TestSelectFindsWhatMatches changes a cache at random and selects from its states,
// new, kept and rewound: always all objects that match, and no others.
func TestSelectFindsWhatMatches(t *testing.T) {
	for round := range uint64(8) {
		random := rand.New(rand.NewPCG(round, 3))
		c := filled(t, Options{})
		var kept []Snapshot
		next := storage.Revision(100)
		for range 40 {
			for range random.IntN(40) {
				var batch []Change
				for range 1 + random.IntN(4) {
					next++
					p := randomPod(random)
					change := Change{Key: p.Key(), Revision: next}
					if random.IntN(4) > 0 {
						change.Object = objectOf(t, c, p, next)
					}
					batch = append(batch, change)
				}
				c.Apply(batch)
			}
			c.Advance(next)
			kept = append(kept, c.Current())
			if exact, err := c.Exact(t.Context(), 100+storage.Revision(random.Int64N(int64(next-100)+1))); err == nil {
				kept = append(kept, exact)
			}
			for range 30 {
				s := kept[random.IntN(len(kept))]
				namespace, name, label, field := randomSelectors(random)
				checkSelect(t, s, selecting(t, namespace, name, label, field), fmt.Sprintf("round %d: namespace %q, name %q, labels %q, fields %q", round, namespace, name, label, field))
			}
		}
	}
}

func checkSelect(t *testing.T, s Snapshot, sel *state.Selection, what string) {
	t.Helper()
	var got, want []string
	for o := range s.Select(sel, "") {
		got = append(got, o.Key)
	}
	for o := range s.Range("", "") {
		if sel.Matches(o) {
			want = append(want, o.Key)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: selected %v, want %v", what, got, want)
	}
}

// TestSelectLooksAtWhatItFinds in a large cache, before and after changes: a few
// leaves for each object, whatever the number of others.
func TestSelectLooksAtWhatItFinds(t *testing.T) {
	const n = 6_000
	c := New(podResource(), Options{})
	labelled := func(i, turn int, revision storage.Revision) *Object {
		return objectOf(t, c, pod{
			Namespace: fmt.Sprintf("ns-%02d", i/300), Name: fmt.Sprintf("pod-%05d", i), Node: fmt.Sprint("node-", (i+turn)%600),
			Labels: map[string]string{"app": fmt.Sprint("app-", (i+turn)%300), "tier": "web"},
		}, revision)
	}
	objects := make([]*Object, n)
	for i := range objects {
		objects[i] = labelled(i, 0, 1)
	}
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		for _, test := range []struct {
			label, field string
			matches      int64
		}{
			{"app=app-7,tier=web", "", 20},
			{"app in (app-7,app-8)", "", 40},
			{"app=none", "", 0},
			{"", "spec.nodeName=node-9", 10},
			{"tier", "metadata.name=pod-02345", 1},
		} {
			before := c.Stats()
			checkSelect(t, c.Current(), selecting(t, "", "", test.label, test.field), when)
			after := c.Stats()
			if got := after.Selected - before.Selected; got != test.matches {
				t.Errorf("%s: %s %s selected %d, want %d", when, test.label, test.field, got, test.matches)
			}
			if got := after.LookedAt - before.LookedAt; got > 100*(test.matches+1) {
				t.Errorf("%s: %s %s looked at %d objects for %d", when, test.label, test.field, got, test.matches)
			}
		}
	}
	look("filled")
	next := storage.Revision(10)
	for turn := 1; turn <= 2; turn++ {
		for i := range n {
			next++
			o := labelled(i, turn, next)
			c.Apply([]Change{{Key: o.Key, Object: o, Revision: next}})
		}
		look(fmt.Sprint("changed ", turn, " times"))
	}
}

// BenchmarkSelect is a list of few objects among many.
func BenchmarkSelect(b *testing.B) {
	for _, n := range []int{1000, 232_000, 1_000_000} {
		c := New(podResource(), Options{})
		objects := make([]*Object, n)
		for i := range objects {
			p := pod{
				Namespace: fmt.Sprintf("ns-%04d", i*1000/n), Name: fmt.Sprintf("pod-%07d", i), Node: fmt.Sprint("node-", i%max(1, n/232)), Phase: "Running",
				Labels: map[string]string{"app": fmt.Sprint("app-", i%max(1, n/20)), "tier": "web", "release": "stable", "instance": fmt.Sprint(i * 1000 / n)},
			}
			objects[i] = objectOf(b, c, p, 1)
		}
		if _, err := c.Fill(objects, 10); err != nil {
			b.Fatal(err)
		}
		for name, sel := range map[string]*state.Selection{
			"node":  selecting(b, "", "", "", "spec.nodeName=node-3"),
			"label": selecting(b, "", "", "app=app-3,tier=web", ""),
			"name":  selecting(b, "", "", "", fmt.Sprintf("metadata.name=pod-%07d", n/2)),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				found := 0
				for b.Loop() {
					for range c.Current().Select(sel, "") {
						found++
					}
				}
				b.ReportMetric(float64(found)/float64(b.N), "objects/op")
			})
		}
	}
}
