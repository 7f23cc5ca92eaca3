package relay

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// tree is a tree of relays in one process, with the caches, encoders and decoders of real
// relays, and without sockets: the bytes of an event go from the encoder of one relay to the
// decoder of the next.
type tree struct {
	res      *resource.Resource
	root     *node
	levels   [][]*node // of relays, the root first
	watchers []watcher
	versions []storage.Revision // of the events, in order
	fill     []*object
}

// node is one relay: a cache, and the stream from the cache above that feeds it.
type node struct {
	tree   *tree
	source *source
	above  *watchcache.Watcher // nil: the root
	parent *node

	// mu guards what has been woken, by the writer of the cache.
	mu       sync.Mutex
	relays   []*node
	watchers []*watcher
}

// watcher is a client of a relay in the last level.
type watcher struct {
	node   *node
	stream *watchcache.Watcher
	got    int // events
}

// Wake implements watchcache.Waker.
func (n *node) Wake() watchcache.Starter {
	n.parent.mu.Lock()
	defer n.parent.mu.Unlock()
	n.parent.relays = append(n.parent.relays, n)
	return nil
}

// Wake implements watchcache.Waker.
func (w *watcher) Wake() watchcache.Starter {
	w.node.mu.Lock()
	defer w.node.mu.Unlock()
	w.node.watchers = append(w.node.watchers, w)
	return nil
}

// takeAwake returns what has been woken since the last call.
func (n *node) takeAwake() (relays []*node, watchers []*watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	relays, watchers = n.relays, n.watchers
	n.relays, n.watchers = nil, nil
	return relays, watchers
}

const treeObjects = 10

// eventOf returns an object of about 1 kB as a stream of the upstream has it.
func eventOf(tb testing.TB, name string, revision int64) *object {
	tb.Helper()
	o := &object{}
	json := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":%q,"namespace":"default","uid":%q},"data":{"x":%q}}`,
		revision, name, name, strings.Repeat("x", 900))
	if err := o.UnmarshalJSON(json); err != nil {
		tb.Fatal(err)
	}
	return o
}

// newTree makes a tree of relays: the root, levels of relays with a fan-out, each filled.
func newTree(tb testing.TB) *tree {
	tb.Helper()
	tr := &tree{res: builtin.Table().Lookup("", "v1", "configmaps")}
	for i := range treeObjects {
		tr.fill = append(tr.fill, eventOf(tb, fmt.Sprint("object-", i), int64(i+1)))
	}
	tr.root = tr.newNode(tb, nil)
	tr.levels = [][]*node{{tr.root}}
	return tr
}

func (tr *tree) newNode(tb testing.TB, parent *node) *node {
	tb.Helper()
	s := &source{relay: &Relay{opts: Options{Logger: slog.New(slog.DiscardHandler)}}, res: tr.res, cache: watchcache.New(tr.res, watchcache.Options{}), follows: new(watchcache.Progress)}
	s.cache.Follow(s.follows)
	objects := make([]*object, 0, len(tr.fill))
	for _, o := range tr.fill {
		received := &object{}
		if err := received.UnmarshalJSON(o.json); err != nil { // each relay has a copy of its own
			tb.Fatal(err)
		}
		objects = append(objects, received)
	}
	if err := s.Replace(objects, fmt.Sprint(treeObjects)); err != nil {
		tb.Fatal(err)
	}
	n := &node{tree: tr, source: s, parent: parent}
	if parent != nil {
		n.above = tr.watch(tb, parent, n)
	}
	return n
}

// watch opens a stream from the version of the first fill.
func (tr *tree) watch(tb testing.TB, n *node, waker watchcache.Waker) *watchcache.Watcher {
	tb.Helper()
	w, err := n.source.cache.Watch(watchcache.WatchOptions{After: treeObjects, Waker: waker})
	if err != nil {
		tb.Fatal(err)
	}
	var buf [1]watchcache.Event
	if n, err := w.Read(buf[:]); n != 0 || err != nil { // it sleeps from here on
		tb.Fatal(n, err)
	}
	return w
}

// addLevel puts relays below each of the last level.
func (tr *tree) addLevel(tb testing.TB, fanOut int) {
	tb.Helper()
	var level []*node
	for _, parent := range tr.levels[len(tr.levels)-1] {
		for range fanOut {
			level = append(level, tr.newNode(tb, parent))
		}
	}
	tr.levels = append(tr.levels, level)
}

// addWatchers opens watches at each relay of the last level.
func (tr *tree) addWatchers(tb testing.TB, fanOut int) {
	tb.Helper()
	last := tr.levels[len(tr.levels)-1]
	tr.watchers = make([]watcher, 0, len(last)*fanOut)
	for _, n := range last {
		for range fanOut {
			tr.watchers = append(tr.watchers, watcher{node: n})
			w := &tr.watchers[len(tr.watchers)-1]
			w.stream = tr.watch(tb, n, w)
		}
	}
}

// write has the upstream send one event, and returns when every watcher has got it.
func (tr *tree) write(tb testing.TB) {
	tb.Helper()
	revision := int64(treeObjects + len(tr.versions)*3 + 1) // other resources have the versions between
	tr.versions = append(tr.versions, storage.Revision(revision))
	if err := tr.root.source.Update(eventOf(tb, fmt.Sprint("object-", len(tr.versions)%treeObjects), revision)); err != nil {
		tb.Fatal(err)
	}
	relays, watchers := tr.root.takeAwake()
	if len(watchers) > 0 {
		tb.Fatal("the root has watchers")
	}
	var group errgroup.Group
	group.SetLimit(4)
	for _, n := range relays {
		group.Go(n.receive)
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
}

// newEncoder returns what encodes the events of one stream.
func (tr *tree) newEncoder() encoding.EventEncoder {
	return encoding.NewEventEncoder(encoding.NewEncoder(tr.res, encoding.Form{Media: encoding.JSON}, func(string) {}), "")
}

// receive feeds a relay with what the one above has sent, and has those below receive it.
func (n *node) receive() error {
	encoder := n.tree.newEncoder()
	if err := eachEvent(n.above, func(event watchcache.Event) error {
		var parts encoding.Parts
		if err := encoder.AddEvent(context.Background(), &parts, event); err != nil {
			return err
		}
		o := &object{}
		if err := o.UnmarshalJSON(parts.Pieces[1]); err != nil { // without what is around an object
			return err
		}
		return n.source.Update(o)
	}); err != nil {
		return err
	}
	for {
		relays, watchers := n.takeAwake()
		if len(relays)+len(watchers) == 0 {
			return nil
		}
		for _, below := range relays {
			if err := below.receive(); err != nil {
				return err
			}
		}
		for _, w := range watchers {
			if err := w.receive(&encoder); err != nil {
				return err
			}
		}
	}
}

// receive encodes what a client gets, and checks that it is the next event.
func (w *watcher) receive(encoder *encoding.EventEncoder) error {
	var parts encoding.Parts
	versions := w.node.tree.versions
	return eachEvent(w.stream, func(event watchcache.Event) error {
		if w.got == len(versions) || event.Revision != versions[w.got] || event.Object.Revision != event.Revision || event.Type != watchcache.Modified {
			return fmt.Errorf("event %d is %s %s at version %d, want one of the versions %d", w.got, event.Type, event.Object.Key, event.Revision, versions)
		}
		w.got++
		parts.Reset()
		return encoder.AddEvent(context.Background(), &parts, event)
	})
}

// eachEvent reads the events that there are.
func eachEvent(w *watchcache.Watcher, do func(watchcache.Event) error) error {
	var buf [8]watchcache.Event
	for {
		n, err := w.Read(buf[:])
		if n == 0 || err != nil {
			return err
		}
		for _, event := range buf[:n] {
			if err := do(event); err != nil {
				return err
			}
		}
	}
}

// check checks that every watcher has got every event.
func (tr *tree) check(tb testing.TB) {
	tb.Helper()
	for i := range tr.watchers {
		if got := tr.watchers[i].got; got != len(tr.versions) {
			tb.Fatalf("watcher %d has got %d events of %d", i, got, len(tr.versions))
		}
	}
}

// TestTreeOfCaches: every watcher of a tree of three levels sees every event, in order, at
// the upstream's version. BenchmarkTreeOfCaches does the same with 1,000,000 watchers.
func TestTreeOfCaches(t *testing.T) {
	const fanOut = 10
	tr := newTree(t)
	tr.addLevel(t, fanOut)
	tr.addLevel(t, fanOut)
	tr.addWatchers(t, fanOut)
	for range 50 {
		tr.write(t)
	}
	tr.check(t)
}
