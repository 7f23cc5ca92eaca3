package filtered

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	libclient "github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/tests/workload"
)

var (
	duration = flag.Duration("filtered.duration", 20*time.Second, "how long filtered lists and watches are read, in rounds")
	seed     = flag.Uint64("filtered.seed", 0, "what decides on writes, reads and faults; two runs with one seed are alike, but not the same; 0: another each time")
	grace    = flag.Duration("filtered.grace", 10*time.Second, "for how long something may be sent after its right was withdrawn, besides how late this process is scheduled: a second, unless the machine is busy with other tests, which may keep the server's process from running")
	round    = flag.Duration("filtered.round", 5*time.Second, "how long between two comparisons")
)

func TestMain(m *testing.M) {
	for variable, process := range map[string]func(dir string) error{serverDir: runServer, storeDir: runStore} {
		if dir := os.Getenv(variable); dir != "" {
			if err := process(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// TestHistories reads while there are writes and faults, and then compares, in rounds. With
// all of its history, a server has to send each change once; without, the result counts. Two servers
// share one etcd, and clients move between them with their versions.
func TestHistories(t *testing.T) {
	if testing.Short() {
		*duration, *round = min(*duration, time.Second), min(*round, time.Second)
	}
	for name, of := range map[string]struct {
		servers  int
		compacts bool
	}{
		"exact": {1, false}, "compacted": {1, true}, "exact, two servers": {2, false}, "compacted, two servers": {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			if of.servers > 1 && testing.Short() {
				t.Skip("TestTwoServers is the short one")
			}
			t.Parallel()
			s := *seed
			if s == 0 {
				s = rand.Uint64()
			}
			t.Logf("-filtered.seed=%d -filtered.duration=%v", s, *duration)
			newRun(t, s, of.servers, of.compacts).rounds()
		})
	}
}

// run is one server, or several, and the clients.
type run struct {
	t        *testing.T
	hosts    []*host
	proxy    *faultnet.Balancer
	random   *rand.Rand
	writer   *writer
	clients  []*client
	checkers []*checker
	// informers have the client library's watches, resumes and differences.
	informers map[*selection]*informer.SharedInformer[*corev1.Secret]
	calm      atomic.Bool
	kills     int
}

func newRun(t *testing.T, seed uint64, servers int, compacts bool) *run {
	t.Helper()
	r := &run{t: t, random: rand.New(rand.NewPCG(seed, 1)), informers: map[*selection]*informer.SharedInformer[*corev1.Secret]{}}
	if servers == 1 {
		r.hosts = []*host{newHost(t, compacts, "", nil)}
	} else {
		r.hosts = newHosts(t, compacts, servers)
	}
	r.writer = newWriter(t, seed, r.hosts...)
	r.writer.prepare()
	var addresses []string
	for _, h := range r.hosts {
		addresses = append(addresses, strings.TrimPrefix(h.config.Host, "https://"))
	}
	var err error
	if r.proxy, err = faultnet.NewBalancer(addresses...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.proxy.Close() }) // its clients are gone
	var reading sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); reading.Wait() })
	lag := &lag{}
	reading.Go(func() { lag.measure(ctx) })
	r.clients = newClients(t, r.hosts[0], r.proxy.Addr(), &r.calm, seed, t.Errorf)
	for _, c := range r.clients {
		reading.Go(func() { c.run(ctx) })
		r.checkers = append(r.checkers, &checker{client: c, model: r.writer.model, exact: !compacts, shared: servers > 1, late: lag.before, fail: t.Errorf})
	}
	for _, i := range identities {
		if i.as == "" {
			r.inform(i)
		}
	}
	return r
}

// inform starts an informer of what a user may see.
func (r *run) inform(i *identity) {
	r.t.Helper()
	config := rest.CopyConfig(r.hosts[0].config)
	config.Host, config.BearerToken = "https://"+r.proxy.Addr(), i.token
	factory := informer.NewFactory(workload.NewClient(r.t, config, libclient.Options{}), informer.Options{Logger: slog.New(slog.DiscardHandler), Reflector: reflector.Options{Backoff: reflector.Backoff{Base: 20 * time.Millisecond, Max: time.Second}}})
	r.informers[&selection{reader: reader{i, secrets}}] = informer.For[*corev1.Secret](factory, informer.ListOptions{Visible: true})
	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx)
	r.t.Cleanup(func() { stop(); factory.Shutdown() })
	if err := factory.WaitForSync(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// agreement is how long clients may take to have what they may see.
const agreement = 90 * time.Second

// leastWrites is how many there are in each round, on a busy machine, too.
const leastWrites = 60

// rounds makes trouble and compares until the time is over.
func (r *run) rounds() {
	for range leastWrites {
		r.writer.once()
	}
	r.agree() // also that every client has read something
	for end, n := time.Now().Add(*duration), 1; n == 1 || time.Now().Before(end) && !r.t.Failed(); n++ {
		var faults sync.WaitGroup
		until := time.Now().Add(min(*round, max(time.Until(end), 100*time.Millisecond)))
		faults.Go(func() { r.faults(until) })
		for writes := 0; (writes < leastWrites || time.Now().Before(until)) && !r.t.Failed(); writes++ {
			r.writer.once()
		}
		faults.Wait()
		quiet := time.Now()
		r.agree()
		r.report(n, time.Since(quiet))
	}
}

// newHosts starts servers that share one etcd.
func newHosts(t *testing.T, compacts bool, servers int) (hosts []*host) {
	t.Helper()
	store := "http://" + newStore(t)
	for i := range servers {
		var first *host
		if i > 0 {
			first = hosts[0]
		}
		hosts = append(hosts, newHost(t, compacts, store, first))
	}
	return hosts
}

// newWriter returns a writer that writes by these servers.
func newWriter(t *testing.T, seed uint64, hosts ...*host) *writer {
	t.Helper()
	direct := hosts[0].transport(t, true)
	t.Cleanup(direct.CloseIdleConnections)
	w := &writer{
		t: t, client: &http.Client{Transport: direct, Timeout: operation}, random: rand.New(rand.NewPCG(seed, 2)), //passes: the server may be gone, and is asked again
		model: newModel(), parts: map[string][]rbacv1.PolicyRule{},
	}
	for _, h := range hosts {
		w.urls = append(w.urls, h.config.Host)
	}
	return w
}

// faults cuts connections, and ends a server once.
func (r *run) faults(until time.Time) {
	kill := time.Now().Add(time.Duration(r.random.Int64N(int64(time.Until(until)))))
	for ; time.Now().Before(until); workload.Wait(r.t.Context(), r.upTo(min(time.Until(until), 400*time.Millisecond))) {
		if !kill.IsZero() && time.Now().After(kill) {
			kill = time.Time{}
			r.kill()
		}
		switch r.random.IntN(6) {
		case 0:
			r.proxy.Refuse(true)
			r.proxy.Cut()
			workload.Wait(r.t.Context(), r.upTo(200*time.Millisecond))
		case 1, 2:
			r.proxy.Cut()
		case 3:
			r.proxy.CutAfter(faultnet.ToClient, r.random.Int64N(20_000))
			workload.Wait(r.t.Context(), r.upTo(400*time.Millisecond))
		}
		r.proxy.Heal()
	}
	if !kill.IsZero() {
		r.kill()
	}
}

// upTo is a random time, at least a millisecond.
func (r *run) upTo(d time.Duration) time.Duration {
	return time.Millisecond + time.Duration(r.random.Int64N(int64(max(d, time.Millisecond))))
}

// kill ends a server, in order if another one goes on and chance has it, and starts it again.
func (r *run) kill() {
	h, with := r.hosts[0], syscall.SIGKILL
	if len(r.hosts) > 1 {
		h = pick(r.random, r.hosts)
		with = pick(r.random, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM})
	}
	r.kills++
	h.end(r.t, with)
	if len(r.hosts) > 1 {
		workload.Wait(r.t.Context(), r.upTo(500*time.Millisecond)) // clients are at the others meanwhile
	}
	if err := h.start(); err != nil {
		r.t.Errorf("the server does not start again: %v", err)
	}
}

// agree waits until every client has what its user may see, and checks how it got that.
func (r *run) agree() {
	r.t.Helper()
	r.calm.Store(true)
	defer r.calm.Store(false)
	m := r.writer.model
	for end := time.Now().Add(agreement); !r.t.Failed(); workload.Wait(r.t.Context(), 10*time.Millisecond) {
		behind := ""
		for _, k := range r.checkers {
			k.replay(k.client.take())
			want := m.view(&k.client.selection, m.latest)
			if at(m.may[k.client.identity], m.latest, setRevision).set != 0 && (k.partial || k.holds == nil || !maps.Equal(k.holds, want)) {
				behind = fmt.Sprintf("%s holds %v, and visible is %v\n%s", k.client.name, sorted(k.holds), sorted(want), strings.Join(k.log, "\n"))
			}
		}
		for s, i := range r.informers {
			have := map[string]int64{}
			for _, o := range i.Lister().List("", labels.Everything()) {
				have[o.Namespace+"/"+o.Name] = versionOf(o.ResourceVersion)
			}
			if want := m.view(s, m.latest); !maps.Equal(have, want) {
				behind = fmt.Sprintf("the informer of %s holds %v, and visible is %v", s.identity.token, sorted(have), sorted(want))
			}
		}
		if behind == "" {
			return
		}
		if time.Now().After(end) {
			r.t.Errorf("LOSS: after %v without writes, at %d, %s", agreement, m.latest, behind)
		}
	}
}

func (r *run) report(n int, agreed time.Duration) {
	var sum checker
	var expired, refused, differences int64
	for _, k := range r.checkers {
		sum.events, sum.bookmarks, sum.lists, sum.watches = sum.events+k.events, sum.bookmarks+k.bookmarks, sum.lists+k.lists, sum.watches+k.watches
		sum.withheld, sum.nameful = sum.withheld+k.withheld, sum.nameful+k.nameful
		expired, refused = expired+k.client.expired.Load(), refused+k.client.refused.Load()
	}
	for _, i := range r.informers {
		for _, n := range i.Stats().Reflector.Differences {
			differences += n
		}
	}
	w := r.writer
	r.t.Logf("round %d: agreed after %.1fs; %d writes of objects, %d of roles and bindings, %d without an answer; %d ends of servers; %d watches, %d events, %d bookmarks, %d lists; "+
		"%d events withheld, %d deletions without content, %d times 410, %d refusals; %d differences",
		n, agreed.Seconds(), w.writes, w.policies, w.unknown, r.kills, sum.watches, sum.events, sum.bookmarks, sum.lists, sum.withheld, sum.nameful, expired, refused, differences)
}

// lag knows how late this process was scheduled: so late it notes what has come.
type lag struct {
	mu   sync.Mutex
	late []lateness
}

type lateness struct {
	at time.Time
	by time.Duration
}

func (l *lag) measure(ctx context.Context) {
	const interval = 20 * time.Millisecond
	for ctx.Err() == nil {
		begun := time.Now()
		workload.Wait(ctx, interval)
		if by := time.Since(begun) - interval; by > interval {
			l.mu.Lock()
			l.late = append(l.late, lateness{time.Now(), by})
			l.mu.Unlock()
		}
	}
}

// before returns how late it was at most in the seconds around a time.
func (l *lag) before(t time.Time) (most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.late) - 1; i >= 0 && t.Sub(l.late[i].at) < 5*time.Second; i-- {
		most = max(most, l.late[i].by)
	}
	return most
}
