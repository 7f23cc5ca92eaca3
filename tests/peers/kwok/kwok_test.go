package kwok

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/childprocess"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/tests/peers/program"
)

var (
	nodes  = flag.Int("kwok.nodes", 100, "how many nodes to keep alive")
	pods   = flag.Int("kwok.pods", 500, "how many pods")
	period = flag.Duration("kwok.period", 30*time.Second, "for how long, once all of them run")
)

const (
	// leaseDuration is how long a node's lease holds; KWOK renews it four times
	// as often.
	leaseDuration = 40 * time.Second
	// testTimeout is how long everything may take to come to life, and to go.
	testTimeout = 10 * time.Minute
	// writers share the creating and deleting.
	writers = 16
)

// TestNodesAndPodsStayAlive has KWOK run nodes and pods: all become Ready and
// Running, no lease runs out and no node or pod falls back in the whole period,
// and in the end all can be deleted.
func TestNodesAndPodsStayAlive(t *testing.T) {
	kwok := os.Getenv("LEVELWIRE_KWOK")
	if kwok == "" {
		t.Skip("LEVELWIRE_KWOK does not name a kwok (go install sigs.k8s.io/kwok/cmd/kwok@v0.8.0)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), *period+testTimeout)
	defer cancel()
	server := program.Start(t, program.Build(t), "serve", "--storage=embedded")
	c := newCluster(t, server.Kubeconfig)
	simulator := startKWOK(t, kwok, server.Kubeconfig)

	begin := time.Now()
	if err := c.create(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes and %d pods created in %v", *nodes, *pods, time.Since(begin).Round(time.Millisecond))
	c.await(ctx, t, c.alive)
	t.Logf("all nodes Ready and all pods Running after %v", time.Since(begin).Round(time.Millisecond))
	report(t, "at work", server, simulator)

	c.stayAlive(ctx, t)
	report(t, fmt.Sprintf("after %v more", *period), server, simulator)

	begin = time.Now()
	if err := c.delete(ctx); err != nil {
		t.Fatal(err)
	}
	c.await(ctx, t, c.gone)
	t.Logf("all deleted after %v", time.Since(begin).Round(time.Millisecond))
	report(t, "in the end", server, simulator)
}

// startKWOK runs KWOK for all nodes until the test ends.
func startKWOK(t *testing.T, path, kubeconfig string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--kubeconfig="+kubeconfig, "--manage-all-nodes", "--config=testdata/stages.yaml",
		"--node-ip=10.0.0.1", fmt.Sprintf("--node-lease-duration-seconds=%d", int(leaseDuration.Seconds())))
	cmd.Stdout, cmd.Stderr = log, log
	if err := childprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to lose
		_ = cmd.Wait()         // says that it was killed
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("KWOK said at the end:\n%s", said[max(0, len(said)-4000):])
		}
	})
	return cmd
}

func report(t *testing.T, when string, server *program.Server, simulator *exec.Cmd) {
	t.Helper()
	ours, err := server.Usage()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := program.UsageOf(simulator.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: levelwire has used %v of processor time, %d MiB (at most %d); KWOK %v, %d MiB",
		when, ours.CPU, ours.Resident>>20, ours.Peak>>20, theirs.CPU, theirs.Resident>>20)
}

// cluster is what the test sees and does, with client-go.
type cluster struct {
	client *kubernetes.Clientset
}

func newCluster(t *testing.T, kubeconfig string) *cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{client: client}
}

func nodeName(i int) string { return fmt.Sprintf("kwok-%04d", i) }

// create creates the nodes, and the pods bound to them in turn.
func (c *cluster) create(ctx context.Context) error {
	if err := each(ctx, *nodes, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"type": "kwok"}}}
		_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	return each(ctx, *pods, func(ctx context.Context, i int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i), Labels: map[string]string{"app": "load"}},
			Spec: corev1.PodSpec{
				NodeName:   nodeName(i % *nodes),
				Containers: []corev1.Container{{Name: "c", Image: "registry.example/load"}},
			},
		}
		_, err := c.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// delete deletes all pods as a user does, gracefully, and then the nodes.
func (c *cluster) delete(ctx context.Context) error {
	all := metav1.ListOptions{}
	if err := c.client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
		return err
	}
	if err := c.wait(ctx, c.noPods); err != nil {
		return err
	}
	return c.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, all)
}

// alive is nil if every node is Ready with a lease that holds and every pod is
// Running and ready.
func (c *cluster) alive(ctx context.Context) error {
	return firstError(c.nodesReady(ctx), c.leasesHold(ctx), c.podsRun(ctx))
}

func (c *cluster) nodesReady(ctx context.Context) error {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return count(list.Items, *nodes, "nodes are Ready", func(node *corev1.Node) bool {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

func (c *cluster) leasesHold(ctx context.Context) error {
	list, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return count(list.Items, *nodes, "leases hold", func(lease *coordinationv1.Lease) bool {
		return lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < leaseDuration
	})
}

func (c *cluster) podsRun(ctx context.Context) error {
	list, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return count(list.Items, *pods, "pods are Running", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil
	})
}

func (c *cluster) gone(ctx context.Context) error {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return firstError(c.noPods(ctx), count(list.Items, 0, "nodes are left", func(*corev1.Node) bool { return true }))
}

func (c *cluster) noPods(ctx context.Context) error {
	list, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return count(list.Items, 0, "pods are left", func(*corev1.Pod) bool { return true })
}

// count is an error unless exactly so many items are as they should be.
func count[T any](items []T, want int, what string, good func(*T) bool) error {
	got := 0
	for i := range items {
		if good(&items[i]) {
			got++
		}
	}
	if got != want || len(items) != want {
		return fmt.Errorf("%d of %d %s, want %d", got, len(items), what, want)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look is how often the cluster is looked at.
const look = 5 * time.Second

func (c *cluster) wait(ctx context.Context, check func(context.Context) error) error {
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func (c *cluster) await(ctx context.Context, t *testing.T, check func(context.Context) error) {
	t.Helper()
	if err := c.wait(ctx, check); err != nil {
		t.Fatal(err)
	}
}

// stayAlive looks again and again for the whole period; a node or pod that is down
// then is a failure.
func (c *cluster) stayAlive(ctx context.Context, t *testing.T) {
	t.Helper()
	end := time.NewTimer(*period)
	defer end.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	var failures []string
	for looks := 1; ; looks++ {
		select {
		case <-again.C:
			if err := c.alive(ctx); err != nil {
				failures = append(failures, err.Error())
			}
		case <-end.C:
			if len(failures) > 0 {
				t.Errorf("down %d times of %d: %s", len(failures), looks-1, strings.Join(failures, "; "))
			}
			return
		}
	}
}
