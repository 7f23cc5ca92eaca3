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

// testbed is one scenario's servers of a store, writers, subjects (the clients
// under test), and the balancer and gate between them, which can be closed.
type testbed struct {
	ctx    context.Context
	random *rand.Rand

	members  []*member // of etcd, if the servers share several
	hosts    []*host
	store    storage.Store // read and compacted beside the servers
	reader   *historyReader
	writes   *population
	balancer *faultnet.Balancer // of the subjects, behind the gate
	gate     *gate
	subjects []*subject
	ahead    time.Duration // of the servers' clocks

	rough  bool         // clients have been cut off while they came back
	agreed storeHistory // when all subjects agreed last
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

// newTestbed starts the servers of a scenario, and all subjects.
func newTestbed(t *testing.T, seed uint64, s scenario) *testbed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	t.Cleanup(cancel)
	b := &testbed{ctx: ctx, random: rand.New(rand.NewPCG(seed, 100)), gate: &gate{}, asked: map[*subject]tally{}}
	b.startServers(t, s.servers, s.members, s.settings)
	b.reader = follow(b.ctx, t, b.store)
	t.Cleanup(cancel) // ends it

	b.writes = newPopulation(t, b.writersConfig(t), seed)
	if err := b.writes.write(b.ctx, task{writes: 60}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(b.hosts[0].config)
	config.Host, config.Dial = "https://"+b.balancer.Addr(), b.gate.dial
	b.subjects = everySubject(t, config)
	for _, s := range b.subjects {
		t.Cleanup(s.start(b.ctx, t))
	}
	t.Cleanup(b.heal)
	return b
}

func (b *testbed) startServers(t *testing.T, servers, members int, s settings) {
	t.Helper()
	switch {
	case members > 0:
		b.members = startMembers(t, members)
		s.EtcdServers = urlsOf(b.members)
	case servers > 1:
		s.EtcdServers = []string{startEtcd(t)}
	}
	var addresses []string
	for i := range servers {
		h := newHost(t, s)
		if i > 0 { // one authority, and one key of tokens, as a load balancer needs
			if err := os.CopyFS(filepath.Join(h.settings.Dir, "pki"), os.DirFS(filepath.Join(b.hosts[0].settings.Dir, "pki"))); err != nil {
				t.Fatal(err)
			}
		}
		h.start(t)
		b.hosts, addresses = append(b.hosts, h), append(addresses, h.address())
	}
	if servers > 1 {
		b.store = outsider(t, s.EtcdServers...)
	} else {
		b.store = outsider(t, b.hosts[0].settings.Listen)
	}
	b.balancer = balance(t, addresses)
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

// writersConfig is the writers' way to the servers, which no fault closes.
func (b *testbed) writersConfig(t *testing.T) *rest.Config {
	t.Helper()
	if len(b.hosts) == 1 {
		return b.hosts[0].config
	}
	var addresses []string
	for _, h := range b.hosts {
		addresses = append(addresses, h.address())
	}
	config := rest.CopyConfig(b.hosts[0].config)
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
func (b *testbed) write(t *testing.T, todo task) {
	t.Helper()
	if err := b.writes.write(b.ctx, todo); err != nil {
		t.Fatalf("write %+v: %v", todo, err)
	}
}

// meanwhile writes while f does what it does.
func (b *testbed) meanwhile(t *testing.T, todo task, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- b.writes.write(b.ctx, todo) }()
	f()
	if err := <-done; err != nil {
		t.Fatalf("write %+v: %v", todo, err)
	}
}

// pass lets time pass on all servers.
func (b *testbed) pass(t *testing.T, d time.Duration) {
	t.Helper()
	b.ahead += d
	for _, h := range b.hosts {
		h.setClock(t, b.ahead)
	}
}

// restart ends all servers and starts them again.
func (b *testbed) restart(t *testing.T, with syscall.Signal) {
	t.Helper()
	for _, h := range b.hosts {
		h.restart(t, with)
	}
}

// roll restarts one server after the other. The balancer leads around that server,
// as a load balancer does that has noticed: a client that was just connected to a
// server that is then killed would be free to list.
func (b *testbed) roll(t *testing.T) {
	t.Helper()
	for _, h := range b.hosts {
		before := b.connections()
		with := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[b.random.IntN(2)]
		b.balancer.Drain(h.address(), true)
		h.restart(t, with)
		b.balancer.Drain(h.address(), false)
		// All subjects have a watch again that is old enough before the next server goes.
		for begun := time.Now(); b.connections() < before && time.Since(begun) < comeBack && b.ctx.Err() == nil; {
			wait(b.ctx, 20*time.Millisecond)
		}
		wait(b.ctx, 2*longEnough) // a connection is not a watch yet
	}
}

// comeBack is how long clients may take until all are connected again.
const comeBack = time.Minute

// connections returns how many the subjects have.
func (b *testbed) connections() (n int) {
	for _, open := range b.balancer.Open() {
		n += open
	}
	return n
}

// compact lets so much time pass that the servers compact all that there is now.
// It takes a few hours of theirs.
func (b *testbed) compact(t *testing.T) {
	t.Helper()
	now := b.readAll(t).until
	for {
		b.pass(t, 2*retention)
		for range 20 {
			oldest, err := retry(b.ctx, b.store.Oldest)
			if err != nil {
				t.Fatal(err)
			}
			if uint64(oldest) >= now {
				return
			}
			wait(b.ctx, compactionInterval)
		}
	}
}

// compactOutside compacts the store as another client of it, which writes no
// tombstones.
func (b *testbed) compactOutside(t *testing.T) {
	t.Helper()
	now := b.readAll(t).until
	if err := b.store.Compact(b.ctx, storage.Revision(now)); err != nil && !errors.Is(err, storage.ErrCompacted) {
		t.Fatal(err)
	}
}

// readAll returns the store's history to its present.
func (b *testbed) readAll(t *testing.T) storeHistory {
	t.Helper()
	all, err := b.reader.upToNow(b.ctx, b.store)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// silence cuts the subjects off.
func (b *testbed) silence(how silence) {
	if how == open {
		return
	}
	b.gate.shut(how == refused)
	if how == stalled {
		b.balancer.Stall(faultnet.ToClient, true)
		b.balancer.Stall(faultnet.ToServer, true)
		return
	}
	b.balancer.Cut()
}

// heal lets them through again.
func (b *testbed) heal() {
	b.balancer.Heal()
	b.gate.open()
}

// cutAnywhere cuts connections in the middle of what comes through them.
func (b *testbed) cutAnywhere() {
	b.rough = true
	for range 15 {
		b.balancer.CutAfter(faultnet.ToClient, b.random.Int64N(25_000))
		wait(b.ctx, time.Duration(b.random.IntN(120))*time.Millisecond)
	}
	b.balancer.Heal()
}

// settled is how long all have to agree at least.
const settled = 100 * time.Millisecond

// settle waits until all subjects have what the store has. If they do not come to
// that, the checks will say which one and why.
func (b *testbed) settle(t *testing.T) storeHistory {
	t.Helper()
	all := b.readAll(t)
	deadline := time.Now().Add(testTimeout / 2)
	for time.Now().Before(deadline) && b.ctx.Err() == nil {
		behind := false
		for _, s := range b.subjects {
			want := all.now(s.view)
			if differ("", s.holds(), want) != nil || differ("", s.copy(), want) != nil {
				behind = true
				break
			}
		}
		if !behind {
			wait(b.ctx, settled) // for what should not come
			return all
		}
		wait(b.ctx, 20*time.Millisecond)
	}
	return all
}

// longEnough is how long a watch must have lived when it is cut for client-go's
// reflectors not to list again, unless something has come with it.
const longEnough = 1100 * time.Millisecond

// begin notes where all subjects are before a silence. Each of them gets an event
// first, see longEnough.
func (b *testbed) begin(t *testing.T) {
	t.Helper()
	if err := b.writes.greet(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.agreed = b.settle(t)
	for _, s := range b.subjects {
		s.mark()
		b.asked[s] = s.asked()
	}
}

// judge waits until everything is quiet and has every client checked.
func (b *testbed) judge(t *testing.T, r round) {
	t.Helper()
	all := b.settle(t)
	if err := b.writes.kept(all); err != nil {
		t.Error(err)
	}
	b.compareLists(t, all)
	differences := 0
	for _, s := range b.subjects {
		notes, began := s.received()
		e := &evidence{
			name: s.name, view: s.view, manner: s.manner, history: all, from: b.agreed.until, notes: notes, began: began,
			known: s.copy(), holds: s.holds(), asked: s.asked().since(b.asked[s]), expect: demand{lists: r.gone, differs: s.differs, free: r.rough && s.lists}, ahead: b.rough,
		}
		differences += e.asked.differences
		for _, err := range e.verify() {
			t.Error(err)
		}
	}
	if r.gone && differences == 0 {
		t.Error("no subject got a difference")
	}
}

// compareLists holds what a server lists against the store.
func (b *testbed) compareLists(t *testing.T, all storeHistory) {
	t.Helper()
	list, err := b.writes.client.CoreV1().Pods("").List(b.ctx, metav1.ListOptions{})
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
func (b *testbed) judgeExactly(t *testing.T) {
	t.Helper()
	all := b.readAll(t)
	h := &history.History{Writes: all.writes(), Views: viewsOf(b.subjects), Until: all.until}
	for _, property := range history.Properties() {
		if v := property.Check(h); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
}

func (b *testbed) String() string {
	return fmt.Sprintf("%d subjects, %d changes, clocks %v ahead", len(b.subjects), len(b.agreed.changes), b.ahead)
}
