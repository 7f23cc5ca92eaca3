//go:build linux

package cluster

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/tests/workload"
)

var relayDuration = flag.Duration("cluster.relays", 0, "how long faults happen in each of the tests of relays; 0 skips them")

// relays is how many stand in front of the upstream.
const relays = 2

// TestRelayProcesses: relays and their upstream are killed and stopped. Informers behind the
// relays get every change, and none of them lists again.
func TestRelayProcesses(t *testing.T) {
	happenToRelays(t, false, faultsOfRelays)
}

// TestRelayNetworks: between the relays and their upstream packets are lost, delayed and
// overtaken by others, and processes are killed, too.
func TestRelayNetworks(t *testing.T) {
	if *relayDuration > 0 {
		requireNamespaces(t)
		requireTun(t)
	}
	happenToRelays(t, true, append(slices.Clone(faultsOfWires), faultsOfRelays...))
}

func happenToRelays(t *testing.T, namespaces bool, all []fault) {
	if *relayDuration == 0 {
		t.Skip("-cluster.relays says how long: make relay-faults")
	}
	t.Logf("-cluster.seed=%d -cluster.relays=%v", *seed, *relayDuration)
	faults := chosen(t, all)
	c := newRelays(t, buildPrograms(t), namespaces)
	l := newLoadOf(t, c, c.upstream.config, false)
	d := declareAges(t, l)
	l.happen(t, faults, *relayDuration)
	d.check(t)
	for i, w := range c.upstream.wires {
		t.Logf("the wire of %s: %v", c.servers[i].name, w)
	}
	t.Logf("%d writes were acknowledged", l.journal.Writes.Load())
}

// upstream is what relays stand in front of.
type upstream struct {
	*apiserver
	wires []*wire // to each relay, if there are namespaces

	direct *client.Client
	seen   *record // the changes, by a watch that goes on soon after each fault
}

// newRelays starts an upstream and relays, and returns when all are ready.
func newRelays(t *testing.T, p programs, namespaces bool) *cluster {
	t.Helper()
	c := &cluster{network: newNetwork(t, namespaces)}
	h := c.network.host(t, front)
	up := &upstream{apiserver: &apiserver{dir: t.TempDir(), address: h.port(t, front, 6443)}}
	c.upstream = up
	var hosts []*host
	addresses := []string{"127.0.0.1", h.address(front)}
	for i := range relays {
		hosts = append(hosts, c.network.host(t, front))
		if namespaces {
			w := newWire(t, h, hosts[i], i, *seed)
			up.wires = append(up.wires, w)
			addresses = append(addresses, w.address(0))
		}
	}
	_, port, err := net.SplitHostPort(up.address)
	if err != nil {
		t.Fatal(err)
	}
	bind := map[bool]string{true: "0.0.0.0", false: "127.0.0.1"}[namespaces]
	up.process = newProcess(t, "upstream", h, "ready at", func() []string {
		return append([]string{
			p.levelwire, "serve", "--data-dir=" + up.dir, "--bind-address=" + bind, "--secure-port=" + port,
			"--tls-hosts=" + strings.Join(addresses, ","), "--log-level=info",
		}, keepHistory...)
	})
	up.start(t)
	up.awaitReady(t)
	kubeconfig := filepath.Join(up.dir, "admin.kubeconfig")
	if up.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	up.config.Host = "https://" + up.address
	up.direct = workload.NewClient(t, up.config, client.Options{ReadIdleTimeout: time.Second, PingTimeout: time.Second})
	t.Cleanup(up.direct.CloseIdleConnections)
	for i, h := range hosts {
		server := up.address
		if namespaces {
			server = net.JoinHostPort(up.wires[i].address(0), port)
		}
		c.newRelay(t, h, p.levelwire, kubeconfigOf(t, kubeconfig, "https://"+server))
	}
	c.balance(t, true)
	return c
}

// kubeconfigOf writes a kubeconfig that has another server.
func kubeconfigOf(t *testing.T, from, server string) (path string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
	}
	path = filepath.Join(t.TempDir(), "upstream.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// newRelay starts a relay, and returns when it is ready. The first makes the authorities
// that all have.
func (c *cluster) newRelay(t *testing.T, h *host, program, kubeconfig string) {
	t.Helper()
	s := &apiserver{dir: t.TempDir(), address: h.port(t, front, 7443)}
	bind, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.servers) > 0 {
		if err := os.CopyFS(filepath.Join(s.dir, "pki"), os.DirFS(filepath.Join(c.servers[0].dir, "pki"))); err != nil {
			t.Fatal(err)
		}
	}
	s.process = newProcess(t, fmt.Sprintf("relay-%d", len(c.servers)), h, "ready at", func() []string {
		return []string{
			program, "relay", "--kubeconfig=" + kubeconfig, "--data-dir=" + s.dir, "--bind-address=" + bind, "--secure-port=" + port,
			"--tls-hosts=127.0.0.1", "--log-level=info",
		}
	})
	c.servers = append(c.servers, s)
	s.start(t)
	s.awaitReady(t)
	if s.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
}

// current is the newest version of config maps.
func (u *upstream) current(t *testing.T) storage.Revision {
	t.Helper()
	list, err := client.For[*corev1.ConfigMap](u.direct).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Revision(at)
}

// history returns all changes: those that a watch has seen that goes on soon after each
// fault, as what the upstream keeps in memory is too little for a round of quick writers, and
// those that another one reads of the versions since.
func (u *upstream) history(t *testing.T) []change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), workload.Timeout)
	defer cancel()
	end := uint64(u.current(t))
	u.seen.mu.Lock()
	all := &record{name: "of the upstream", reached: u.seen.reached, changes: slices.Clone(u.seen.changes)}
	u.seen.mu.Unlock()
	w, err := client.For[*corev1.ConfigMap](u.direct).Watch(ctx, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(all.reached, 10), AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatalf("the upstream's history: %v", err)
	}
	defer w.Close()
	for reached := all.reached; reached < end; reached, _ = all.state() {
		event, err := w.Next()
		if err != nil {
			t.Fatalf("the upstream's history after %d, of %d: %v", reached, end, err)
		}
		all.note(event)
	}
	return all.changes
}

// faultsOfRelays are those of processes.
var faultsOfRelays = []fault{
	{"a relay is killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.server().process) }},
	{"all relays are killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.c.servers[0].process, x.c.servers[1].process) }},
	{"the upstream is killed", func(x *trouble) { x.restart(syscall.SIGKILL, x.c.upstream.process) }},
	{"the upstream is killed, and a relay", func(x *trouble) { x.restart(syscall.SIGKILL, x.c.upstream.process, x.server().process) }},
	{"a relay is killed, and the upstream", func(x *trouble) { x.restart(syscall.SIGKILL, x.server().process, x.c.upstream.process) }},
	{"all are killed", func(x *trouble) {
		x.restart(syscall.SIGKILL, x.c.servers[1].process, x.c.upstream.process, x.c.servers[0].process)
	}},
	{"a relay is stopped (SIGSTOP)", func(x *trouble) { x.pause(x.server().process) }},
	{"the upstream is stopped (SIGSTOP)", func(x *trouble) { x.pause(x.c.upstream.process) }},
}

// faultsOfWires need namespaces.
var faultsOfWires = []fault{
	{"a relay's wire loses a tenth", func(x *trouble) {
		x.worsen(conditions{loss: 0.1, delay: 20 * time.Millisecond, jitter: 20 * time.Millisecond})
	}},
	{"a relay's wire loses a third", func(x *trouble) {
		x.worsen(conditions{loss: 0.33, delay: 20 * time.Millisecond, jitter: 20 * time.Millisecond})
	}},
	{"a relay's wire is slow", func(x *trouble) { x.worsen(conditions{delay: 300 * time.Millisecond, jitter: 50 * time.Millisecond}) }},
	{"a relay's wire is very slow", func(x *trouble) { x.worsen(conditions{delay: 1500 * time.Millisecond, jitter: 500 * time.Millisecond}) }},
	{"packets overtake each other", func(x *trouble) {
		x.worsen(conditions{loss: 0.01, delay: time.Millisecond, jitter: 200 * time.Millisecond})
	}},
	{"a relay's wire is cut", func(x *trouble) { x.worsen(conditions{loss: 1}) }},
}

// worsen gives the wire of one relay, or of all, other conditions for a time.
func (x *trouble) worsen(to conditions) {
	all := x.c.upstream.wires
	if i := x.random.IntN(len(all) + 1); i < len(all) {
		all = all[i : i+1]
	}
	for _, w := range all {
		w.set(to)
	}
	x.hold()
	for _, w := range all {
		w.set(usual)
	}
}
