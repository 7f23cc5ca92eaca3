package feed_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage"
)

// truth is the history as the writer knows it.
type truth struct {
	changes []truthChange
	states  map[string]pod
}

type truthChange struct {
	revision storage.Revision
	key      string
	now, old *pod
}

// query is what a watcher asks for, in the form that the model evaluates: with
// apimachinery's own matchers.
type query struct {
	namespace, name, label, field string
	labels                        labels.Selector
	fields                        fields.Selector
}

func (w query) parsed() query {
	w.labels, _ = labels.Parse(w.label) // from a table that parses
	w.fields = fields.ParseSelectorOrDie(w.field)
	return w
}

// randomQuery is one of many kinds.
func randomQuery(random *rand.Rand) query {
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	return query{
		namespace: pick("", "", "ns0", "ns1"),
		name:      pick("", "", "", "p3", "p4"),
		label:     pick("", "", "app=1", "app in (1,2)", "!app", "app!=2"),
		field:     pick("", "", "spec.nodeName=n1", "spec.nodeName=", "status.phase=Running", "status.phase=Running,spec.nodeName!=n2", "metadata.namespace=ns1"),
	}.parsed()
}

func (w query) selection(t testing.TB) *watchcache.Selection {
	t.Helper()
	return selecting(t, w.namespace, w.name, w.label, w.field)
}

func (w query) String() string {
	return fmt.Sprintf("%s/%s labels %q fields %q", w.namespace, w.name, w.label, w.field)
}

func (w query) wants(p *pod) bool {
	return p != nil && (w.namespace == "" || p.Namespace == w.namespace) && (w.name == "" || p.Name == w.name) &&
		w.labels.Matches(labels.Set(p.Labels)) && w.fields.Matches(fields.Set{
		"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": p.Node, "status.phase": p.Phase})
}

// projected is an event that a watcher must get.
type projected struct {
	revision storage.Revision
	text     string
}

// projection is the events that a watcher must get after a revision.
func (h *truth) projection(w query, after storage.Revision) []projected {
	var out []projected
	for _, c := range h.changes {
		if c.revision <= after {
			continue
		}
		var kind watchcache.EventType
		shown := c.now
		switch was, is := w.wants(c.old), w.wants(c.now); {
		case was && is:
			kind = watchcache.Modified
		case is:
			kind = watchcache.Added
		case was:
			kind, shown = watchcache.Deleted, c.old
		default:
			continue
		}
		out = append(out, projected{c.revision, fmt.Sprintf("%s %s@%d %s %s %v", kind, c.key, c.revision, shown.Node, shown.Phase, shown.Labels["app"])})
	}
	return out
}

// stateAt is what a list with the query must show.
func (h *truth) stateAt(w query, revision storage.Revision) map[string]storage.Revision {
	out := map[string]storage.Revision{}
	for _, c := range h.changes {
		if c.revision > revision {
			break
		}
		delete(out, c.key)
		if w.wants(c.now) {
			out[c.key] = c.revision
		}
	}
	return out
}

// describe formats an event as projection does.
func describe(e watchcache.Event) string {
	a := e.Object.Attributes
	return fmt.Sprintf("%s %s@%d %s %s %v", e.Type, e.Object.Key, e.Revision, a.Fields[podtest.FieldNode], a.Fields[podtest.FieldPhase], a.Labels.Get("app"))
}

// client is a watcher that reads at its own speed and records what it gets.
type client struct {
	query    query
	watcher  *watchcache.Watcher
	snapshot *watchcache.Snapshot
	after    storage.Revision
	initial  map[string]storage.Revision
	events   []string
	promises []promise
	err      error
}

// promise is a bookmark: when count events had been read, all up to revision had been.
type promise struct {
	revision storage.Revision
	count    int
}

func (c *client) run(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	buf := make([]watchcache.Event, 1+random.IntN(20))
	pause := time.Duration(random.IntN(30)) * time.Millisecond
	for {
		wasInitial := c.watcher.Initial()
		n, err := c.watcher.Read(buf)
		if err != nil {
			c.err = err
			return
		}
		for _, e := range buf[:n] {
			if wasInitial && e.Revision <= c.after {
				c.initial[e.Object.Key] = e.Revision
			} else {
				c.events = append(c.events, describe(e))
			}
		}
		if r := c.watcher.Reached(); r != 0 {
			c.promises = append(c.promises, promise{r, len(c.events)})
		}
		if n == 0 {
			select {
			case <-c.watcher.Ready():
			case <-ctx.Done():
				return
			}
		}
		time.Sleep(pause) // of the bubble: orders the goroutines, takes no time
	}
}

func (c *client) verify(t *testing.T, h *truth) {
	t.Helper()
	if c.err != nil {
		t.Errorf("%v after %d: %v", c.query, c.after, c.err)
		return
	}
	if c.snapshot != nil {
		if want := h.stateAt(c.query, c.after); fmt.Sprint(c.initial) != fmt.Sprint(want) {
			t.Errorf("%v at %d: initial state %v, want %v", c.query, c.after, c.initial, want)
		}
	}
	want := h.projection(c.query, c.after)
	for i, p := range want {
		if i >= len(c.events) || c.events[i] != p.text {
			t.Errorf("%v after %d: saw %d events, want %d; event %d should be %s:\n%q", c.query, c.after, len(c.events), len(want), i, p.text, c.events[min(i, len(c.events)):])
			return
		}
	}
	if len(c.events) > len(want) {
		t.Errorf("%v after %d: saw what it should not: %q", c.query, c.after, c.events[len(want):])
	}
	for _, p := range c.promises {
		due, _ := slices.BinarySearchFunc(want, p.revision+1, func(e projected, r storage.Revision) int { return cmp.Compare(e.revision, r) })
		if due > p.count {
			t.Errorf("%v: %d is reached after %d events, although %d are before it", c.query, p.revision, p.count, due)
			return
		}
	}
}

// TestModel writes at random through a store, with clients of all kinds
// starting at random moments, and compares all events that they get, and every
// exact read, with the true history.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, seed, watchcache.Options{}) })
		})
		t.Run(fmt.Sprint(seed, " compressed"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runModel(t, seed, watchcache.Options{CompressObjects: true, CompressAtOnce: true})
			})
		})
	}
}

func runModel(t *testing.T, seed uint64, opts watchcache.Options) {
	random := rand.New(rand.NewPCG(seed, 99))
	store := openStore(t)
	source := &faulty{Store: store}
	h := &truth{states: map[string]pod{}}
	for range 30 {
		h.write(t, store, random)
	}
	r := startRigOf(t, store, source, feed.Options{PageSize: 10}, opts)
	filledAt := r.pods.Current().Revision()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients []*client
	for step := range 600 {
		h.write(t, store, random)
		if step%5 == 0 {
			clients = append(clients, startClient(ctx, t, r.pods, random, filledAt))
		}
		switch random.IntN(40) {
		case 0:
			source.breakWith(storage.ErrUnavailable)
		case 1, 2, 3:
			source.repair()
		case 4:
			at := filledAt + storage.Revision(random.IntN(int(r.pods.Current().Revision()-filledAt)+1))
			if s, err := r.pods.Exact(t.Context(), at); err != nil || fmt.Sprint(revisions(s)) != fmt.Sprint(h.stateAt(query{}.parsed(), at)) {
				t.Errorf("exact read at %d: %v, %v, want %v", at, err, revisions(s), h.stateAt(query{}.parsed(), at))
			}
		}
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
	source.repair()
	time.Sleep(time.Hour)
	cancel()
	synctest.Wait()
	now, _ := store.Current(t.Context())
	for _, c := range clients {
		c.verify(t, h)
		if got := c.watcher.Reached(); got < now {
			t.Errorf("%v: reached %d in the end, want %d", c.query, got, now)
		}
	}
	if got := r.pods.Current(); fmt.Sprint(revisions(got)) != fmt.Sprint(h.stateAt(query{}.parsed(), now)) || got.Revision() != now {
		t.Errorf("final state %v, want %v", revisions(got), h.stateAt(query{}.parsed(), now))
	}
	if n, err := r.feed.Check(t.Context()); n != 0 || err != nil {
		t.Errorf("%d differences in the end, %v", n, err)
	}
}

// write makes one random change.
func (h *truth) write(t *testing.T, store storage.Store, random *rand.Rand) {
	t.Helper()
	if random.IntN(6) == 0 {
		writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		return
	}
	p := pod{Namespace: fmt.Sprint("ns", random.IntN(3)), Name: fmt.Sprint("p", random.IntN(12)),
		Node: []string{"", "n1", "n2"}[random.IntN(3)], Phase: []string{"Pending", "Running"}[random.IntN(2)]}
	if app := random.IntN(3); app > 0 {
		p.Labels = map[string]string{"app": fmt.Sprint(app)}
	}
	c := truthChange{key: p.Key()}
	if old, ok := h.states[p.Key()]; ok {
		c.old = &old
		if old.Node != "" {
			p.Node = old.Node // a final field
		}
	}
	if c.old != nil && random.IntN(4) == 0 {
		c.revision = erase(t, store, "/registry/pods/"+p.Key())
		delete(h.states, p.Key())
	} else {
		c.revision = write(t, store, p)
		c.now = &p
		h.states[p.Key()] = p
	}
	h.changes = append(h.changes, c)
}

func startClient(ctx context.Context, t *testing.T, cache *watchcache.Cache, random *rand.Rand, filledAt storage.Revision) *client {
	t.Helper()
	c := &client{initial: map[string]storage.Revision{}}
	c.query = randomQuery(random)
	opts := watchcache.WatchOptions{Selection: c.query.selection(t)}
	current := cache.Current()
	switch random.IntN(3) {
	case 0:
		c.after = filledAt + storage.Revision(random.IntN(int(current.Revision()-filledAt)+1))
	case 1:
		c.after = current.Revision() + storage.Revision(random.IntN(10))
	default:
		c.snapshot, c.after = &current, current.Revision()
		opts.Initial = c.snapshot
	}
	opts.After = c.after
	c.watcher = watching(t, cache, opts)
	go c.run(ctx, random.Uint64())
	return c
}
