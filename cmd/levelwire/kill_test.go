package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// cluster is every component as a process of its own.
type cluster struct {
	t          *testing.T
	dir        string
	args       map[string][]string
	processes  map[string]*process
	kubeconfig string
}

const serve = "serve"

var components = []string{serve, "controllers", "scheduler", "kubelet", "proxy"}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	kubeconfig := filepath.Join(data, "admin.kubeconfig")
	c := []string{"--kubeconfig", kubeconfig, "--log-level=warn"}
	// Who is killed is dead, and its successor may take its place at once.
	elected := func(name string) []string { return append([]string{"--leader-elect-identity=" + name}, c...) }
	return &cluster{
		t: t, dir: dir, kubeconfig: kubeconfig, processes: map[string]*process{},
		args: map[string][]string{
			serve:         {"--data-dir", data, "--secure-port", strconv.Itoa(freePort(t)), "--log-level=warn"},
			"controllers": elected("controllers"),
			"scheduler":   elected("scheduler"),
			"proxy":       c,
			"kubelet":     append([]string{"--node-name=node-1", "--start-after=50ms", "--stop-after=50ms"}, c...),
		},
	}
}

// freePort returns a port that is not in use, and stays free while the server is away.
func freePort(t *testing.T) int {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// start starts a component; for the server it waits until it is ready.
func (c *cluster) start(ctx context.Context, name string) {
	c.t.Helper()
	c.processes[name] = startProcess(c.t, c.dir, name, append([]string{name}, c.args[name]...)...)
	if name == serve {
		if err := c.processes[name].awaitLine(ctx, "ready at"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// intact fails the test if a component has ended without having been killed.
func (c *cluster) intact() {
	c.t.Helper()
	for _, p := range c.processes {
		if err := p.endedByItself(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) client() *client.Client {
	c.t.Helper()
	cl, err := client.FromKubeconfig(c.kubeconfig, client.Options{ContentType: client.Protobuf})
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestKilledComponents kills the five processes of a cluster with signal 9, in
// random order, while clients write, and then looks whether everything has
// become as the acknowledged writes say. LEVELWIRE_KILL_ROUNDS asks for more
// rounds than the default, LEVELWIRE_KILL_SEED repeats a run's order.
func TestKilledComponents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs five processes for half a minute and more")
	}
	rounds := int(number(t, "LEVELWIRE_KILL_ROUNDS", 20))
	seed := number(t, "LEVELWIRE_KILL_SEED", uint64(time.Now().UnixNano()))
	t.Logf("LEVELWIRE_KILL_SEED=%d LEVELWIRE_KILL_ROUNDS=%d", seed, rounds)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute+time.Duration(rounds)*10*time.Second, fmt.Errorf("the time for %d rounds is over", rounds))
	defer cancel()

	c := newCluster(t)
	for _, name := range components {
		c.start(ctx, name)
	}
	cl := c.client()
	defer cl.CloseIdleConnections()
	createServices(ctx, t, cl)
	observer := newObserver(ctx, t, cl)
	defer observer.stop()

	work := startWriters(ctx, cl, seed)
	c.killRounds(ctx, work, rounds, rand.New(rand.NewPCG(seed, 0)))
	if err := work.finish(); err != nil {
		t.Fatal(err)
	}
	acked, failed := work.traffic.counts()
	t.Logf("%d writes were acknowledged, the outcome of %d requests was unknown", acked, failed)
	c.intact()
	converge(ctx, t, func() error { return work.verify(ctx, cl) })
	converge(ctx, t, func() error { return verifyPods(ctx, cl, work.sets.known) })
	converge(ctx, t, func() error { return verifyProxy(ctx, cl, c.processes["proxy"]) })
	converge(ctx, t, func() error { return observer.verify(ctx, cl) })

	// What is on disk is what has been acknowledged, too.
	c.processes[serve].kill()
	c.start(ctx, serve)
	converge(ctx, t, func() error { return work.verify(ctx, cl) })
	for _, name := range []string{"proxy", "kubelet", "scheduler", "controllers", serve} {
		if err := c.processes[name].terminate(ctx); err != nil {
			t.Errorf("SIGTERM to %s: %v", name, err)
		}
	}
}

// killRounds kills one or two components in each round, and every one of them
// in five rounds.
func (c *cluster) killRounds(ctx context.Context, work *writers, rounds int, random *rand.Rand) {
	c.t.Helper()
	reach := func(acked, failed int) {
		c.t.Helper()
		if err := work.reach(ctx, acked, failed); err != nil {
			c.t.Fatal(err)
		}
	}
	more := func(n int) {
		c.t.Helper()
		acked, failed := work.counts()
		reach(acked+n, failed)
	}
	var order []int
	for range rounds {
		if len(order) == 0 {
			order = random.Perm(len(components))
		}
		victims := []string{components[order[0]]}
		if other := components[random.IntN(len(components))]; other != victims[0] && random.IntN(2) == 0 {
			victims = append(victims, other)
		}
		order = order[1:]
		more(1 + random.IntN(50))
		c.intact()
		// Counted before the kill: all writers may have noticed it by the time it
		// returns, and then none fails again.
		acked, failed := work.counts()
		down := false
		for _, name := range victims {
			c.processes[name].kill()
			down = down || name == serve
		}
		if down {
			reach(acked, failed+1)
		} else {
			more(1 + random.IntN(100))
		}
		for _, i := range random.Perm(len(victims)) {
			c.start(ctx, victims[i])
		}
		c.t.Logf("killed and restarted: %v", victims)
	}
	more(1)
}

// writers are all that write in the test.
type writers struct {
	*traffic
	maps  []*writer[*corev1.ConfigMap]
	sets  *writer[*appsv1.ReplicaSet]
	stop  chan struct{}
	group *errgroup.Group
	ended <-chan struct{} // when the first of them has failed
}

func startWriters(ctx context.Context, c *client.Client, seed uint64) *writers {
	w := &writers{traffic: newTraffic(), stop: make(chan struct{})}
	for i := range 3 {
		w.maps = append(w.maps, newWriter(configMaps(c), fmt.Sprintf("map-%d-", i), 30, seed+uint64(i), 40, w.traffic))
	}
	w.sets = newWriter(replicaSets(c), "set-", 6, seed+100, 5, w.traffic)
	w.group, _ = errgroup.WithContext(ctx)
	failed, fail := context.WithCancel(ctx)
	w.ended = failed.Done()
	start := func(run func(context.Context, <-chan struct{}) error) {
		w.group.Go(func() error {
			err := run(ctx, w.stop)
			if err != nil {
				fail()
			}
			return err
		})
	}
	for _, maps := range w.maps {
		start(maps.run)
	}
	start(w.sets.run)
	return w
}

// reach is traffic.reach, but ends when a writer has failed.
func (w *writers) reach(ctx context.Context, acked, failed int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := w.traffic.reach(ctx, acked, failed)
	select {
	case <-w.ended:
		return w.finish()
	default:
		return err
	}
}

// finish ends the stream of writes, with no outcome in doubt.
func (w *writers) finish() error {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	return w.group.Wait()
}

func configMaps(c *client.Client) subject[*corev1.ConfigMap] {
	return subject[*corev1.ConfigMap]{
		resource: client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault),
		make: func(name string, value int) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": strconv.Itoa(value)}}
		},
		patch: `{"data":{"value":"%d"}}`,
		value: func(obj *corev1.ConfigMap) int {
			value, err := strconv.Atoi(obj.Data["value"])
			if err != nil {
				return -1
			}
			return value
		},
		values: 1_000_000,
		sole:   true,
	}
}

const (
	groups      = 3 // of ReplicaSets, each with a Service
	groupLabel  = "group"
	servicePort = 80
	targetPort  = 8080
)

func replicaSets(c *client.Client) subject[*appsv1.ReplicaSet] {
	return subject[*appsv1.ReplicaSet]{
		resource: client.For[*appsv1.ReplicaSet](c).Namespace(metav1.NamespaceDefault),
		make: func(name string, value int) *appsv1.ReplicaSet {
			labels := map[string]string{"set": name, groupLabel: strconv.Itoa(int(name[len(name)-1]) % groups)}
			replicas := int32(value)
			return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main"}}},
				},
			}}
		},
		patch:  `{"spec":{"replicas":%d}}`,
		value:  func(obj *appsv1.ReplicaSet) int { return int(*obj.Spec.Replicas) },
		values: 5,
	}
}

func createServices(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	services := client.For[*corev1.Service](c).Namespace(metav1.NamespaceDefault)
	for i := range groups {
		name := "group-" + strconv.Itoa(i)
		if _, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{groupLabel: strconv.Itoa(i)},
			Ports:    []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(targetPort)}},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// silent is for what the test's own informers have to say about a server that
// is killed all the time.
var silent = slog.New(slog.DiscardHandler)
