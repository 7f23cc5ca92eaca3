package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/conformance/history"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/storage"
)

// world is one scenario's: servers of a store, those who write, those who look
// on, and the way between them that can be closed.
type world struct {
	ctx    context.Context
	random *rand.Rand

	hosts    []*host
	store    storage.Store // past the servers
	truth    *truth
	writes   *population
	way      *faultnet.Balancer // of the subjects, behind the gate
	gate     *gate
	subjects []*subject
	ahead    time.Duration // of the servers' clocks

	rough  bool // clients have been cut off while they came back
	agreed past // when everybody agreed last
	asked  map[*subject]tally
}

// silence is how a client is cut off.
type silence int

const (
	open    silence = iota // it is not
	refused                // its connections are cut, and new ones refused
	hung                   // its connections are cut, and new ones get no answer
	stalled                // its connections stay, and nothing comes through
)

// newWorld starts so many servers and all subjects.
func newWorld(t *testing.T, seed uint64, servers int, s settings) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	t.Cleanup(cancel)
	w := &world{ctx: ctx, random: rand.New(rand.NewPCG(seed, 100)), gate: &gate{}, asked: map[*subject]tally{}}
	w.startServers(t, servers, s)
	w.truth = follow(w.ctx, t, w.store)
	t.Cleanup(cancel) // ends it

	w.writes = newPopulation(t, w.writersWay(t), seed)
	if err := w.writes.write(w.ctx, task{writes: 60}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(w.hosts[0].config)
	config.Host, config.Dial = "https://"+w.way.Addr(), w.gate.dial
	w.subjects = everySubject(t, config)
	for _, s := range w.subjects {
		t.Cleanup(s.start(w.ctx, t))
	}
	t.Cleanup(w.heal)
	return w
}

func (w *world) startServers(t *testing.T, servers int, s settings) {
	t.Helper()
	if servers > 1 {
		s.EtcdServers = []string{startEtcd(t)}
	}
	var addresses []string
	for i := range servers {
		h := newHost(t, s)
		if i > 0 { // one authority, and one key of tokens, as a load balancer needs
			if err := os.CopyFS(filepath.Join(h.settings.Dir, "pki"), os.DirFS(filepath.Join(w.hosts[0].settings.Dir, "pki"))); err != nil {
				t.Fatal(err)
			}
		}
		h.start(t)
		w.hosts, addresses = append(w.hosts, h), append(addresses, h.address())
	}
	if servers > 1 {
		w.store = outsider(t, s.EtcdServers[0])
	} else {
		w.store = outsider(t, w.hosts[0].settings.Listen)
	}
	w.way = balance(t, addresses)
}

func balance(t *testing.T, addresses []string) *faultnet.Balancer {
	t.Helper()
	way, err := faultnet.NewBalancer(addresses...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := way.Close(); err != nil {
			t.Error(err)
		}
	})
	return way
}

// writersWay is one that no fault closes.
func (w *world) writersWay(t *testing.T) *rest.Config {
	t.Helper()
	if len(w.hosts) == 1 {
		return w.hosts[0].config
	}
	var addresses []string
	for _, h := range w.hosts {
		addresses = append(addresses, h.address())
	}
	config := rest.CopyConfig(w.hosts[0].config)
	config.Host = "https://" + balance(t, addresses).Addr()
	return config
}

// everySubject makes a client of each kind, of each view.
func everySubject(t *testing.T, config *rest.Config) []*subject {
	t.Helper()
	var all []*subject
	for i, v := range views {
		all = append(all,
			ourInformer(t, config, v, client.Protobuf, i%2 == 0),
			ourInformer(t, config, v, client.JSON, i%2 != 0),
			plainWatch(t, config, v, []string{jsonType, protobufType}[i%2]),
			retryWatch(t, config, v, []string{protobufType, jsonType}[i%2]),
		)
		for _, streams := range []bool{true, false} {
			all = append(all, stockInformer(t, config, v, protobufType, streams), stockInformer(t, config, v, jsonType, streams))
		}
		if v.namespace == "" {
			all = append(all, managersCache(t, config, v))
		}
	}
	return all
}

// write writes, whatever happens to the servers meanwhile.
func (w *world) write(t *testing.T, todo task) {
	t.Helper()
	if err := w.writes.write(w.ctx, todo); err != nil {
		t.Fatalf("write %+v: %v", todo, err)
	}
}

// meanwhile writes while f does what it does.
func (w *world) meanwhile(t *testing.T, todo task, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.writes.write(w.ctx, todo) }()
	f()
	if err := <-done; err != nil {
		t.Fatalf("write %+v: %v", todo, err)
	}
}

// pass lets time pass on all servers.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	w.ahead += d
	for _, h := range w.hosts {
		h.setClock(t, w.ahead)
	}
}

// restart ends all servers and starts them again.
func (w *world) restart(t *testing.T, with syscall.Signal) {
	t.Helper()
	for _, h := range w.hosts {
		h.restart(t, with)
	}
}

// roll restarts one server after the other. The way leads around it, as that of a
// load balancer does which has noticed: a client that has just been connected to a
// server which is killed would be free to list.
func (w *world) roll(t *testing.T) {
	t.Helper()
	for _, h := range w.hosts {
		before := w.connections()
		with := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[w.random.IntN(2)]
		w.way.Drain(h.address(), true)
		h.restart(t, with)
		w.way.Drain(h.address(), false)
		// Everybody has a watch again that is old enough before the next server goes.
		for begun := time.Now(); w.connections() < before && time.Since(begun) < comeBack && w.ctx.Err() == nil; {
			wait(w.ctx, 20*time.Millisecond)
		}
		wait(w.ctx, 2*longEnough) // a connection is not a watch yet
	}
}

// comeBack is how long clients may take until all are connected again.
const comeBack = 20 * time.Second

// connections returns how many the subjects have.
func (w *world) connections() (n int) {
	for _, open := range w.way.Open() {
		n += open
	}
	return n
}

// compact lets so much time pass that the servers compact all that there is now.
// It takes a few hours of theirs.
func (w *world) compact(t *testing.T) {
	t.Helper()
	now := w.readAll(t).until
	for {
		w.pass(t, 2*retention)
		for range 20 {
			oldest, err := retry(w.ctx, w.store.Oldest)
			if err != nil {
				t.Fatal(err)
			}
			if uint64(oldest) >= now {
				return
			}
			wait(w.ctx, compactionInterval)
		}
	}
}

// compactOutside is somebody else who compacts the store, and writes nothing
// down of what that forgets.
func (w *world) compactOutside(t *testing.T) {
	t.Helper()
	now := w.readAll(t).until
	if err := w.store.Compact(w.ctx, storage.Revision(now)); err != nil && !errors.Is(err, storage.ErrCompacted) {
		t.Fatal(err)
	}
}

// readAll returns the store's history to its present.
func (w *world) readAll(t *testing.T) past {
	t.Helper()
	all, err := w.truth.upToNow(w.ctx, w.store)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// silence cuts the subjects off.
func (w *world) silence(how silence) {
	if how == open {
		return
	}
	w.gate.shut(how == refused)
	if how == stalled {
		w.way.Stall(faultnet.ToClient, true)
		w.way.Stall(faultnet.ToServer, true)
		return
	}
	w.way.Cut()
}

// heal lets them through again.
func (w *world) heal() {
	w.way.Heal()
	w.gate.open()
}

// cutAnywhere cuts connections in the middle of what comes through them.
func (w *world) cutAnywhere() {
	w.rough = true
	for range 15 {
		w.way.CutAfter(faultnet.ToClient, w.random.Int64N(25_000))
		wait(w.ctx, time.Duration(w.random.IntN(120))*time.Millisecond)
	}
	w.way.Heal()
}

// settled is how long all have to agree at least.
const settled = 100 * time.Millisecond

// settle waits until all subjects have what the store has. If they do not come to
// that, the checks will say who and why.
func (w *world) settle(t *testing.T) past {
	t.Helper()
	all := w.readAll(t)
	deadline := time.Now().Add(testTimeout / 2)
	for time.Now().Before(deadline) && w.ctx.Err() == nil {
		behind := false
		for _, s := range w.subjects {
			want := all.now(s.view)
			if differ("", s.holds(), want) != nil || differ("", s.copy(), want) != nil {
				behind = true
				break
			}
		}
		if !behind {
			wait(w.ctx, settled) // for what should not come
			return all
		}
		wait(w.ctx, 20*time.Millisecond)
	}
	return all
}

// longEnough is how long a watch must have lived when it is cut for client-go's
// reflectors not to list again, unless something has come with it.
const longEnough = 1100 * time.Millisecond

// begin notes where all are before a silence. Each of them is told something
// first, see longEnough.
func (w *world) begin(t *testing.T) {
	t.Helper()
	if err := w.writes.greet(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.agreed = w.settle(t)
	for _, s := range w.subjects {
		s.mark()
		w.asked[s] = s.asked()
	}
}

// judge waits until everything is quiet and has every client checked.
func (w *world) judge(t *testing.T, r round) {
	t.Helper()
	all := w.settle(t)
	if err := w.writes.kept(all); err != nil {
		t.Error(err)
	}
	w.compareLists(t, all)
	differences := 0
	for _, s := range w.subjects {
		notes, began := s.told()
		e := &evidence{
			name: s.name, view: s.view, manner: s.manner, past: all, from: w.agreed.until, notes: notes, began: began,
			known: s.copy(), holds: s.holds(), asked: s.asked().since(w.asked[s]), expect: demand{lists: r.gone, differs: s.differs, free: r.rough && s.lists}, ahead: w.rough,
		}
		differences += e.asked.differences
		for _, err := range e.verify() {
			t.Error(err)
		}
	}
	if r.gone && differences == 0 {
		t.Error("nobody was sent a difference")
	}
}

// compareLists holds what a server lists against the store.
func (w *world) compareLists(t *testing.T, all past) {
	t.Helper()
	list, err := w.writes.client.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]state{}
	for i := range list.Items {
		s := stateOf(&list.Items[i])
		listed[s.key] = s
	}
	if err := differ("the server lists", listed, all.now(views[0])); err != nil {
		t.Error(err)
	}
}

// judgeExactly demands every property of an exact history of what the watchers
// have seen so far.
func (w *world) judgeExactly(t *testing.T) {
	t.Helper()
	all := w.readAll(t)
	h := &history.History{Writes: all.writes(), Views: viewsOf(w.subjects), Until: all.until}
	for _, property := range history.Properties() {
		if v := property.Check(h); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
}

func (w *world) String() string {
	return fmt.Sprintf("%d subjects, %d changes, clocks %v ahead", len(w.subjects), len(w.agreed.changes), w.ahead)
}
