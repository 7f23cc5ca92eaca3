//go:build linux

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/tests/workload"
)

var (
	duration = flag.Duration("cluster.duration", 15*time.Second, "how long faults happen, in each of the tests of faults")
	seed     = flag.Uint64("cluster.seed", 1, "what decides on the faults; two runs with one seed are alike, but not the same")
	only     = flag.String("cluster.fault", "", "make only the faults whose names contain this")
)

// interval is how long faults happen until everything is compared.
const interval = 30 * time.Second

// keepHistory has servers forget nothing, so that no client may list and no watch may
// leave out a change.
var keepHistory = []string{"--compaction-interval=-1s"}

// forget has servers compact history all the time. A watch may get coalesced history then,
// and a client a difference; no informer may list all the same.
var forget = []string{"--compaction-interval=2s", "--compaction-retention=2s"}

// TestProcesses: members and servers end, are stopped, and slow.
func TestProcesses(t *testing.T) {
	skipIfShort(t)
	happen(t, options{arguments: keepHistory}, faultsOfProcesses)
}

// TestCompaction is TestProcesses while history is compacted.
func TestCompaction(t *testing.T) {
	skipIfShort(t)
	happen(t, options{arguments: forget, compacts: true}, faultsOfProcesses)
}

// TestPartitions: networks lose what is sent, and processes fail, too.
func TestPartitions(t *testing.T) {
	skipIfShort(t)
	requireNamespaces(t)
	happen(t, options{namespaces: true, arguments: keepHistory}, append(faultsOfNetworks, faultsOfProcesses...))
}

// TestUpgrade: the members of the former release of etcd become this one's, one after the
// other, while clients notice no more than a member's restart.
func TestUpgrade(t *testing.T) {
	skipIfShort(t)
	p := buildPrograms(t)
	l := newLoad(t, p, options{etcd: p.buildFormer(t), arguments: keepHistory})
	x := l.trouble(t)
	for _, m := range l.members {
		before := m.version(t)
		l.suffer(x, fault{"a member is upgraded", func(x *trouble) {
			m.end(t, syscall.SIGTERM)
			m.program = p.etcd
			m.start(t)
			m.awaitReady(t)
		}})
		l.recover(t)
		t.Logf("%s was %s and is %s", m.name, before, m.version(t))
		if "v"+before != former || m.version(t) == before {
			t.Errorf("%s was %s and is %s; it was to be %s first", m.name, before, m.version(t), former)
		}
	}
	l.agree(t)
	l.report(t)
}

// TestNoSpace: a member reaches its quota, for which etcd refuses the writes of all; reads
// and watches go on, and servers say why there are no writes. The operator makes room with
// levelwire defrag, which clears the alarm, and everything goes on.
func TestNoSpace(t *testing.T) {
	skipIfShort(t)
	p := buildPrograms(t)
	l := newLoad(t, p, options{quota: 24 << 20, arguments: forget, compacts: true})
	x := l.trouble(t)
	l.suffer(x, fault{"a member has reached its quota", func(x *trouble) {
		x.fill(l.members[0])
		l.awaitRefusal(t)
		x.free(l.members[0], p.levelwire)
	}})
	l.recover(t)
	l.agree(t)
	l.report(t)
}

// awaitRefusal waits until writes are refused because there is no room.
func (l *load) awaitRefusal(t *testing.T) {
	t.Helper()
	objects := client.For[*corev1.ConfigMap](l.direct).Namespace("default")
	var last error
	workload.Await(t, func() string { return fmt.Sprintf("writes to be refused, not: %v", last) }, func() bool {
		_, last = objects.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "refused-"}}, metav1.CreateOptions{})
		status := apierrors.APIStatus(nil)
		return errors.As(last, &status) && status.Status().Code == http.StatusInsufficientStorage
	})
	t.Logf("writes are refused: %v", last)
	for _, s := range l.servers {
		direct := workload.NewClient(t, s.config, client.Options{})
		list, err := client.For[*corev1.ConfigMap](direct).List(t.Context(), metav1.ListOptions{LabelSelector: workload.Selector})
		if err != nil || len(list.Items) == 0 {
			t.Errorf("a consistent list of %s, while writes are refused: %v", s.name, err)
		}
		direct.CloseIdleConnections()
	}
}

func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
}

// happen makes faults at random.
func happen(t *testing.T, o options, all []fault) {
	o.closes = *seed%2 == 1
	t.Logf("-cluster.seed=%d -cluster.duration=%v; the balancer closes the connections of servers that are not ready: %v", *seed, *duration, o.closes)
	faults := chosen(t, all)
	newLoad(t, buildPrograms(t), o).happen(t, faults, *duration)
}

// chosen are the faults that -cluster.fault asks for.
func chosen(t *testing.T, all []fault) (faults []fault) {
	t.Helper()
	for _, f := range all {
		if strings.Contains(f.name, *only) {
			faults = append(faults, f)
		}
	}
	if len(faults) == 0 {
		t.Skipf("no such fault is called %q", *only)
	}
	return faults
}

// happen makes faults at random for some time.
func (l *load) happen(t *testing.T, faults []fault, duration time.Duration) {
	t.Helper()
	x := l.trouble(t)
	for end := time.Now().Add(duration); time.Now().Before(end) && !t.Failed(); {
		for next := time.Now().Add(min(interval, time.Until(end))); time.Now().Before(next) && !t.Failed(); {
			l.suffer(x, faults[x.random.IntN(len(faults))])
		}
		l.agree(t)
	}
	l.report(t)
}

// load is what clients do with a cluster, and how they notice what is wrong.
type load struct {
	*cluster
	outages   *outages
	observers *observers
	reads     *reads
	direct    *client.Client
	journal   *workload.Journal
	subjects  []workload.Subject
	lists     []map[reflector.ListCause]int64 // at the beginning
	round     int
	compacts  bool // so that there is no history to compare watches with
}

// newLoad returns when everything agrees for the first time.
func newLoad(t *testing.T, p programs, o options) *load {
	t.Helper()
	c := newCluster(t, p, o)
	return newLoadOf(t, c, c.config, o.compacts)
}

// newLoadOf has clients read from a cluster, and writers write to where writes says.
func newLoadOf(t *testing.T, c *cluster, writes *rest.Config, compacts bool) *load {
	t.Helper()
	l := &load{cluster: c, outages: newOutages(), reads: &reads{}, compacts: compacts}
	l.direct = workload.NewClient(t, writes, client.Options{
		ContentType: client.Protobuf, ReadIdleTimeout: time.Second, PingTimeout: time.Second,
	})
	t.Cleanup(l.direct.CloseIdleConnections)
	l.observers = observe(t, l.cluster, l.outages)
	t.Cleanup(l.observers.stop)
	l.journal = workload.NewJournal(client.For[*corev1.ConfigMap](l.direct))
	l.journal.Failed = l.outages.fail
	if l.upstream != nil {
		// What is written while a relay is away for 20 s must fit the history that a server
		// keeps in memory, or watches at that relay get coalesced history, as they should.
		l.journal.Pause = 60 * time.Millisecond
	}
	t.Cleanup(l.reads.start(t, l.cluster, l.outages, l.journal))
	l.subjects = workload.NewSubjects(t, l.config, nil)
	t.Cleanup(func() { workload.StopAll(l.subjects) })
	stopWriting := l.journal.Write(t, *seed)
	t.Cleanup(stopWriting)
	l.agree(t)
	l.lists = workload.ListsOf(l.subjects)
	return l
}

func (l *load) trouble(t *testing.T) *trouble {
	return &trouble{t: t, c: l.cluster, random: rand.New(rand.NewPCG(*seed, 0)), ctx: t.Context()}
}

// suffer makes a fault. Half of the time the next one may come before all is well.
func (l *load) suffer(x *trouble, f fault) {
	begun := time.Now()
	l.outages.begin(f.name)
	f.make(x)
	took := time.Since(begun)
	if x.random.IntN(2) == 0 {
		l.recover(x.t)
	}
	x.t.Logf("%s for %v, then %v", f.name, round(took), round(time.Since(begun)-took))
}

// recover waits until all servers are ready and writes are acknowledged, which they must
// be by themselves.
func (l *load) recover(t *testing.T) {
	t.Helper()
	healed := time.Now()
	workload.Await(t, l.condition, func() bool {
		for _, s := range l.servers {
			if ready, _ := s.health.get(); !ready {
				return false
			}
		}
		return l.outages.lastWrite().After(healed)
	})
	l.outages.recovered(time.Since(healed))
}

func (l *load) condition() string {
	var b strings.Builder
	for _, s := range l.servers {
		_, text := s.health.get()
		b.WriteString(s.name + ": " + text + "\n")
	}
	return "all servers to be ready and to write:\n" + b.String()
}

// report shows what clients noticed, and what servers have logged that is worth a warning.
func (l *load) report(t *testing.T) {
	t.Helper()
	t.Logf("what clients noticed:\n%v", l.outages)
	messages := regexp.MustCompile(`level=(?:WARN|ERROR) msg=("(?:[^"\\]|\\.)*"|\S+)`)
	logged := map[string]int{}
	for _, s := range l.servers {
		log, err := os.ReadFile(s.log)
		if err != nil {
			t.Error(err)
		}
		for _, match := range messages.FindAllSubmatch(log, -1) {
			logged[string(match[1])]++
		}
	}
	t.Logf("what servers logged: %v", logged)
}

// agree compares everything, while there are neither faults nor writes.
func (l *load) agree(t *testing.T) {
	for _, m := range l.members {
		m.checkRunning(t)
	}
	for _, s := range l.servers {
		s.checkRunning(t)
	}
	if l.upstream != nil {
		l.upstream.checkRunning(t)
	}
	l.recover(t)
	release := l.journal.Quiet()
	begun := time.Now()
	workload.Agree(t, l.direct, l.journal, l.subjects)
	changes := 0
	if !l.compacts {
		changes = l.observers.check(t, l.cluster)
	}
	l.reads.check(t)
	switch {
	case l.lists == nil:
	case l.compacts:
		workload.OnlyTheseAndDifferences(t, l.subjects, l.lists)
	default:
		workload.OnlyThese(t, l.subjects, l.lists)
	}
	l.round++
	t.Logf("round %d: agreed after %v; %d changes, %d watches opened; %d consistent reads, and %d refused; connections %v", l.round, round(time.Since(begun)),
		changes, l.observers.opened(), l.reads.answered.Load(), l.reads.refused.Load(), l.balancer.Open())
	l.outages.resume()
	release()
}
