package soak

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/tests/workload"
)

var (
	restarts = flag.Int("soak.restarts", 2, "how often several servers are all restarted, one after another")
	absences = flag.Int("soak.absences", 2, "how often clients of several servers are away while history is compacted")
)

// catchUp is how long a watch waits for a server that is behind.
const catchUp = 300 * time.Millisecond

// TestServersRestart: whatever happens to the servers, as long as there is one
// that can be reached, informers go on from where they are, and never list. In
// a short test all are restarted once.
func TestServersRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		*restarts = min(*restarts, 1)
	}
	t.Logf("-soak.seed=%d -soak.restarts=%d", *seed, *restarts)
	random := rand.New(rand.NewPCG(*seed, 0))
	f := newFleet(t, 3, func(c *server.Config) { c.CompactionInterval, c.CatchUpTimeout = -1, catchUp })
	direct := workload.NewClient(t, f.config, client.Options{ContentType: client.Protobuf})
	defer direct.CloseIdleConnections()
	journal := workload.NewJournal(client.For[*corev1.ConfigMap](direct))
	subjects := workload.NewSubjects(t, f.config, nil)
	defer workload.StopAll(subjects)
	stopWriting := journal.Write(t, *seed)
	defer stopWriting()
	settle := func() {
		release := journal.Quiet()
		defer release()
		workload.Agree(t, direct, journal, subjects)
	}
	settle()
	first := workload.ListsOf(subjects)
	for roll := range *restarts {
		order := random.Perm(len(f.members))
		for i, n := range order {
			// The one that is restarted next is behind, so that its clients take
			// with them what others know already, and come from there.
			behind := f.members[order[(i+1)%len(order)]]
			behind.lag.set(random.IntN(2) == 0)
			f.restart(t, f.members[n], roll%2 == 1)
			workload.Wait(t.Context(), time.Duration(random.IntN(100))*time.Millisecond)
			behind.lag.set(false)
		}
		settle()
		workload.OnlyThese(t, subjects, first)
		t.Logf("restart %d: %d writes so far; connections %v", roll+1, journal.Writes.Load(), f.balancer.Open())
	}
	for n, m := range f.members[:min(len(f.members), max(*restarts-1, 1))] {
		t.Run(fmt.Sprintf("only server %d is left, and it is behind", n), func(t *testing.T) {
			stayBehind(t, f, m, direct, journal, subjects)
			settle()
			workload.OnlyThese(t, subjects, first)
			f.all()
		})
	}
}

// stayBehind has everything come to a server that is behind, for longer than a
// watch waits.
func stayBehind(t *testing.T, f *fleet, m *member, direct *client.Client, j *workload.Journal, subjects []workload.Subject) {
	t.Helper()
	defer m.lag.set(false)
	// Writes go on until all informers have seen one that this server has not.
	// None from before may be on its way then: it would pass for such a one.
	release := j.Quiet()
	workload.Agree(t, direct, j, subjects)
	m.lag.set(true)
	begun := make([]int64, len(subjects))
	for i, s := range subjects {
		begun[i] = s.Stats().Events
	}
	release()
	f.only(nextTo(f, m))
	for i, s := range subjects {
		workload.Await(t, s.Describe, func() bool { return s.Stats().Events > begun[i] })
	}
	busy := make([]int64, len(subjects))
	for i, s := range subjects {
		busy[i] = s.Stats().Resumes[reflector.ResumeBusy]
	}
	f.only(m)
	for i, s := range subjects {
		workload.Await(t, s.Describe, func() bool { return s.Stats().Resumes[reflector.ResumeBusy] > busy[i] })
	}
}

func nextTo(f *fleet, m *member) *member {
	for i := range f.members {
		if f.members[i] == m {
			return f.members[(i+1)%len(f.members)]
		}
	}
	panic("not of this fleet")
}

// TestServersAndCompaction: informers are away while objects are deleted, made
// anew and changed, and all servers compact the history of that. They come back
// to another server than they left, which has been started since. It sends them
// coalesced history, from the tombstones that the servers have written.
func TestServersAndCompaction(t *testing.T) {
	t.Parallel()
	t.Logf("-soak.seed=%d -soak.absences=%d", *seed, *absences)
	random := rand.New(rand.NewPCG(*seed, 0))
	f := newFleet(t, 3, func(c *server.Config) {
		c.CompactionInterval, c.CompactionRetention = 50*time.Millisecond, 50*time.Millisecond
	})
	subjects := workload.NewSubjects(t, f.config, nil)
	defer workload.StopAll(subjects)
	j := workload.NewJournal(client.Resource[*corev1.ConfigMap]{})
	// through makes the writer, and the comparison of the whole, use one address.
	through := func(config *rest.Config, do func(direct *client.Client)) {
		direct := workload.NewClient(t, config, client.Options{ContentType: client.Protobuf})
		defer direct.CloseIdleConnections()
		j.Objects = client.For[*corev1.ConfigMap](direct)
		do(direct)
	}
	churn := func() {
		for range 150 {
			namespace := workload.Namespaces[random.IntN(len(workload.Namespaces))]
			j.Once(t.Context(), random, namespace, fmt.Sprintf("object-%d", random.IntN(60)))
		}
	}
	through(f.config, func(direct *client.Client) {
		churn()
		workload.Agree(t, direct, j, subjects)
	})
	first := workload.ListsOf(subjects)
	for round := range *absences {
		writer, target := f.members[round%3], f.members[(round+1)%3]
		f.balancer.Refuse(true)
		f.balancer.Cut()
		through(writer.client(t), func(direct *client.Client) {
			churn()
			forgotten(t, f, direct)
		})
		f.restart(t, target, round%2 == 0)
		f.only(target)
		f.balancer.Refuse(false)
		through(f.config, func(direct *client.Client) { workload.Agree(t, direct, j, subjects) })
		if n := coalescedResumes(t, target); n == 0 {
			t.Errorf("round %d: no watch got coalesced history", round)
		}
		f.all()
	}
	workload.OnlyThese(t, subjects, first)
}

// forgotten writes something, and waits until the store has compacted all that
// came before.
func forgotten(t *testing.T, f *fleet, direct *client.Client) {
	t.Helper()
	last, err := client.For[*corev1.ConfigMap](direct).Namespace("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "last-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := storage.Revision(workload.StampOf(last).Version - 1)
	workload.Await(t, func() string { return fmt.Sprintf("history through %d", at) }, func() bool {
		_, err := f.etcd.List(t.Context(), "/registry/configmaps/", storage.ListOptions{At: at, Limit: 1})
		if err != nil && !errors.Is(err, storage.ErrCompacted) {
			t.Fatal(err)
		}
		return err != nil
	})
}

// coalescedResumes is what a server counts of them for ConfigMaps.
func coalescedResumes(t *testing.T, m *member) (n int) {
	t.Helper()
	transport, err := rest.TransportFor(m.client(t))
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: transport}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = io.Copy(io.Discard, answer.Body); _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "levelwire_cache_resumes_total{") && strings.Contains(name, `"coalesced"`) && strings.Contains(name, `"configmaps"`) {
			_, _ = fmt.Sscan(value, &n)
		}
	}
	return n
}
