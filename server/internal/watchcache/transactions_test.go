package watchcache

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestRandomTransactions: clients that break off anywhere, and resume on either of two servers,
// converge, although other programs change several objects in one revision, logs are short, and a
// server loses its position in the store now and then. A client drops what is before the version
// that it has, so that it would keep what a deletion with such a version removes. In builds with
// the tag invariants, the caches check their own.
func TestRandomTransactions(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newTransactions(t, seed)
			for range 400 {
				w.step()
			}
			for _, c := range w.clients {
				c.converge(w)
			}
		})
	}
}

// TestRandomTransactionsOneByOne is TestRandomTransactions with servers that are brought the changes
// of a revision one by one, as relays are, while clients read and come and go: two that follow
// kube-apiserver, or one that follows the other server. They do not lose their position in the store: what a server has only from a list then may be told
// at earlier revisions, of which a client has everything that has come from another server a part of
// the last one.
func TestRandomTransactionsOneByOne(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newTransactions(t, seed)
			w.oneByOne = [2]bool{true, seed%2 == 0}
			for range 400 {
				w.step()
			}
			for _, c := range w.clients {
				c.converge(w)
			}
		})
	}
}

// transactions is a store with two servers, and clients of them.
type transactions struct {
	t        *testing.T
	random   *rand.Rand
	revision storage.Revision
	pods     map[string]pod
	created  map[string]storage.Revision
	modified map[string]storage.Revision
	servers  [2]*Cache
	away     [2]bool // has lost its position, and is filled next
	oneByOne [2]bool // is brought one change at a time
	clients  []*transactionClient
}

func newTransactions(t *testing.T, seed uint64) *transactions {
	w := &transactions{t: t, random: rand.New(rand.NewPCG(seed, 0)), revision: 10, pods: map[string]pod{}, created: map[string]storage.Revision{}, modified: map[string]storage.Revision{}}
	for i := range w.servers {
		w.servers[i] = filled(t, Options{HistoryEvents: 1 + w.random.IntN(12), Tombstones: 1 + w.random.IntN(12), ExactHistory: w.random.IntN(4) == 0})
		w.servers[i].Advance(10)
	}
	for _, selection := range []*Selection{
		nil, selecting(t, "a", "", "", ""), selecting(t, "", "", "", "spec.nodeName=n1"), selecting(t, "", "", "", "status.phase=Running"), selecting(t, "", "", "app=1", ""), selecting(t, "", "", "app!=1", ""), selecting(t, "b", "p1", "", ""),
	} {
		w.clients = append(w.clients, &transactionClient{selection: selection}, &transactionClient{selection: selection})
	}
	return w
}

func (w *transactions) step() {
	switch w.random.IntN(6) {
	case 0, 1:
		w.write()
	default:
		w.clients[w.random.IntN(len(w.clients))].step(w)
	}
}

// write makes a transaction, or several, which reach the servers in one batch.
func (w *transactions) write() {
	var changes []func(*Cache) Change
	for range 1 + w.random.IntN(2) {
		w.revision += storage.Revision(1 + w.random.IntN(2))
		at, changed := w.revision, map[string]bool{}
		for range 1 + w.random.IntN(4) {
			p := pod{Namespace: string(rune('a' + w.random.IntN(2))), Name: fmt.Sprint("p", w.random.IntN(4))}
			if changed[p.Key()] {
				continue
			}
			changed[p.Key()] = true
			was, exists := w.pods[p.Key()]
			if exists && w.random.IntN(2) == 0 {
				delete(w.pods, p.Key())
				changes = append(changes, func(*Cache) Change { return gone(p.Key(), at) })
				continue
			}
			p.Node = fmt.Sprint("n", w.random.IntN(2))
			if exists {
				p.Node = was.Node // which never changes
			} else {
				w.created[p.Key()] = at
			}
			p.Phase = []string{"Pending", "Running"}[w.random.IntN(2)]
			p.Labels = map[string]string{"app": fmt.Sprint(w.random.IntN(2))}
			w.pods[p.Key()], w.modified[p.Key()] = p, at
			changes = append(changes, func(c *Cache) Change { return put(w.t, c, p, at) })
		}
	}
	for i, c := range w.servers {
		switch {
		case w.away[i] && w.random.IntN(2) == 0:
			w.fill(c)
			w.away[i] = false
		case w.away[i]:
		case w.random.IntN(20) == 0 && !w.oneByOne[0]:
			w.away[i] = true
		case w.oneByOne[i]:
			w.bringOneByOne(c, changes)
		default:
			batch := make([]Change, 0, len(changes))
			for _, change := range changes {
				batch = append(batch, change(c))
			}
			c.Apply(batch)
			if w.random.IntN(2) == 0 {
				c.Advance(w.revision)
			}
		}
	}
}

// bringOneByOne brings a server changes one by one, each of which it publishes at once. If it
// follows the other server, it gets them as the events of a watch there.
func (w *transactions) bringOneByOne(c *Cache, changes []func(*Cache) Change) {
	brought := make([]Change, 0, len(changes))
	for _, change := range changes {
		brought = append(brought, change(c))
	}
	if !w.oneByOne[1] {
		deletionsFirst(brought)
		for i := range brought[:max(len(brought)-1, 0)] {
			if one := &brought[i]; one.Object == nil && brought[i+1].Revision == one.Revision {
				one.Revision-- // as eventlog.Entry.Carried
			}
		}
	}
	for i, next := range brought {
		held, _ := c.Tree().Get(next.Key)
		if applied := c.ApplyNext(next); applied == (next.Object == nil && held == nil) {
			w.t.Fatalf("%q at %d: applied is %v", next.Key, next.Revision, applied)
		}
		c.Advance(next.Revision)
		w.look()
		if c.ApplyNext(next) {
			w.t.Fatalf("%q at %d was applied twice", next.Key, next.Revision)
		}
		if after := i + 1; after < len(brought) && brought[after].Revision > next.Revision && w.random.IntN(2) == 0 {
			c.Advance(brought[after].Revision - 1) // nothing has changed until then
			w.look()
		}
	}
}

// look has some clients go on.
func (w *transactions) look() {
	for range w.random.IntN(4) {
		w.clients[w.random.IntN(len(w.clients))].step(w)
	}
}

// fill brings a server up to date from a list.
func (w *transactions) fill(c *Cache) {
	var objects []*Object
	for _, namespace := range []string{"a", "b"} {
		for i := range 4 {
			if p, ok := w.pods[fmt.Sprint(namespace, "/p", i)]; ok {
				o := objectOf(w.t, c, p, w.modified[p.Key()])
				o.CreatedRevision, o.SelectorsStableSince = w.created[p.Key()], o.Revision // as a feed has them from a list
				objects = append(objects, o)
			}
		}
	}
	if _, err := c.Fill(objects, w.revision); err != nil {
		w.t.Fatal(err)
	}
	c.Advance(w.revision)
}

// transactionClient is a client that holds what it was told of.
type transactionClient struct {
	selection *Selection
	watcher   *Watcher
	version   storage.Revision // 0: it begins with a list
	held      map[string]storage.Revision
	list      map[string]storage.Revision // initial events
	snapshot  storage.Revision            // of which they are
	empty     bool                        // there are none
}

func (c *transactionClient) step(w *transactions) {
	switch {
	case c.watcher == nil:
		c.open(w, w.servers[w.random.IntN(2)])
	case w.random.IntN(12) == 0:
		c.close()
	case w.random.IntN(6) == 0 && !c.watcher.Initial():
		if at := c.watcher.Bookmark(); at != 0 {
			c.reached(w, at)
		}
	default:
		c.read(w, make([]Event, 1+w.random.IntN(4)))
	}
}

func (c *transactionClient) open(w *transactions, server *Cache) {
	opts := WatchOptions{Selection: c.selection, After: c.version}
	if c.version == 0 {
		snapshot := server.Current()
		opts.Initial, c.snapshot, c.empty = &snapshot, snapshot.Revision(), true
		for range snapshot.Select(c.selection, "") {
			c.empty = false
		}
	}
	watcher, err := server.Watch(opts)
	switch {
	case errors.Is(err, ErrExpired):
		c.version = 0
	case err != nil:
		w.t.Fatal(err)
	default:
		c.watcher, c.list = watcher, map[string]storage.Revision{}
		if opts.Initial != nil && w.random.IntN(2) == 0 {
			snapshot, selection := watcher.TakeInitial()
			for o := range snapshot.Select(selection, "") {
				c.list[o.Key] = o.Revision
			}
			c.endList(w)
		}
	}
}

func (c *transactionClient) close() {
	c.watcher.Close()
	c.watcher = nil
}

// read reads once. It returns false when there is nothing to read.
func (c *transactionClient) read(w *transactions, buf []Event) bool {
	initial := c.watcher.Initial()
	n, err := c.watcher.Read(buf)
	if errors.Is(err, ErrExpired) {
		c.close()
		c.version = 0
		return true
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if initial && c.empty {
		c.endList(w) // what was read are changes
		initial = false
	}
	for i := range buf[:n] {
		if e := &buf[i]; initial {
			c.list[e.Object.Key] = e.Object.Revision
		} else {
			c.apply(w, e)
		}
	}
	if initial && !c.watcher.Initial() {
		c.endList(w)
	}
	return n > 0
}

// endList makes the initial events what the client holds.
func (c *transactionClient) endList(w *transactions) {
	c.held = c.list
	c.reached(w, c.snapshot)
}

func (c *transactionClient) apply(w *transactions, e *Event) {
	c.reached(w, e.Revision)
	if e.Type == Deleted {
		delete(c.held, e.Object.Key)
	} else {
		c.held[e.Object.Key] = e.Object.Revision
	}
}

func (c *transactionClient) reached(w *transactions, version storage.Revision) {
	if version < c.version {
		w.t.Errorf("a client at version %d is told version %d", c.version, version)
	}
	c.version = version
}

// converge reads everything that there is on a server that is up to date.
func (c *transactionClient) converge(w *transactions) {
	server := w.servers[0]
	if server.Current().Revision() < w.revision {
		w.fill(server)
		w.away[0] = false
	}
	if c.watcher != nil {
		c.close()
	}
	for range 1000 {
		if c.watcher == nil {
			c.open(w, server)
		} else if !c.read(w, make([]Event, 3)) {
			break
		}
	}
	want := map[string]storage.Revision{}
	for o := range server.Current().Select(c.selection, "") {
		want[o.Key] = o.Revision
	}
	if !maps.Equal(c.held, want) {
		w.t.Errorf("a client of %+v holds %v, and the server %v", c.selection, c.held, want)
	}
	c.close()
}
