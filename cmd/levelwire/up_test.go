package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

func typesName(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// testTimeout is how long a test waits for anything before it fails.
const testTimeout = 3 * time.Minute

// screen is a terminal to write to, and to wait at.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) read() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

func (s *screen) await(ctx context.Context, t *testing.T, text string) string {
	t.Helper()
	for {
		shown, changed := s.read()
		if strings.Contains(shown, text) {
			return shown
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("it does not say %q:\n%s", text, shown)
		}
	}
}

// upInProcess is a whole cluster within the test.
type upInProcess struct {
	kubeconfig string
	stdout     string // when it was ready
	stop       func() // must end it with exit code 0, and without anything on stderr
}

// startUp runs `levelwire up` with storage in memory until the test ends.
func startUp(t *testing.T, args ...string) *upInProcess {
	t.Helper()
	dir := t.TempDir()
	stdout, stop := startInProcess(t, "stops it.", append([]string{"up", "--storage=memory", "--secure-port=0", "--data-dir", dir}, args...)...)
	return &upInProcess{kubeconfig: filepath.Join(dir, "admin.kubeconfig"), stdout: stdout, stop: stop}
}

// startInProcess runs a command within the test, until stop or the end of the test. It
// returns what the command had printed when it said what it is awaited to. The command
// must end with exit code 0, and without anything on stderr.
func startInProcess(t *testing.T, awaited string, args ...string) (printed string, stop func()) {
	t.Helper()
	stdout, stderr := newScreen(), newScreen()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"levelwire"}, args...), stdout, stderr) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case code := <-ended:
			if shown, _ := stderr.read(); code != exitOK || shown != "" {
				t.Errorf("%s: exit code %d, stderr:\n%s", args[0], code, shown)
			}
		case <-time.After(testTimeout):
			t.Errorf("%s does not end", args[0])
		}
	})
	t.Cleanup(stop)
	waiting, enough := context.WithTimeout(t.Context(), testTimeout)
	defer enough()
	return stdout.await(waiting, t, awaited), stop
}

// TestUp: it says how to reach it, that works, the nodes become ready, and it ends.
func TestUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	up := startUp(t, "--nodes=2")
	for _, text := range []string{"ready at https://127.0.0.1:", "with 2 nodes", "\n  export KUBECONFIG=" + up.kubeconfig + "\n", "\n  kubectl get nodes\n"} {
		if !strings.Contains(up.stdout, text) {
			t.Errorf("it does not say %q:\n%s", text, up.stdout)
		}
	}
	c, err := client.FromKubeconfig(up.kubeconfig, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := awaitReadyNodes(ctx, c, 2); err != nil {
		t.Fatal(err)
	}
	components, err := client.For[*corev1.ComponentStatus](c).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(components.Items) != 3 {
		t.Errorf("its components are %+v", components.Items)
	}
	for _, component := range components.Items { // they are no others that run on this machine
		if got := component.Conditions; len(got) != 1 || got[0].Status != corev1.ConditionTrue || got[0].Message != "ok" {
			t.Errorf("%s: %+v", component.Name, got)
		}
	}
	c.CloseIdleConnections()
	up.stop()
}

// TestReadyTimeIsOfTheWholeStart: the time that it says it took is that since the command began,
// with keys, certificates and the components' clients.
func TestReadyTimeIsOfTheWholeStart(t *testing.T) {
	t.Parallel()
	s, err := server.Listen(server.Config{DataDir: t.TempDir(), Storage: server.Memory, SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testTimeout)
	defer stop()
	var cmd cobra.Command
	running, end := context.WithCancel(ctx)
	cmd.SetContext(running)
	stdout := newScreen()
	cmd.SetOut(stdout)
	parts := upPartsOf(t, "--nodes=1")
	ended := make(chan error, 1)
	go func() { ended <- up(&cmd, s, *parts, slog.New(slog.DiscardHandler), time.Now().Add(-time.Hour)) }()
	if shown := stdout.await(ctx, t, "stops it."); !strings.Contains(shown, " after 1h") {
		t.Errorf("an hour after the command began:\n%s", shown)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// awaitReadyNodes watches until so many nodes are ready.
func awaitReadyNodes(ctx context.Context, c *client.Client, want int) error {
	nodes := client.For[*corev1.Node](c)
	w, err := nodes.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	for ready := map[string]bool{}; len(ready) < want; {
		event, err := w.Next()
		if err != nil {
			return err
		}
		for _, condition := range event.Object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready[event.Object.Name] = true
			}
		}
	}
	return nil
}

// TestSignals: as processes, too, commands end with 0 when they are asked to,
// also those that wait for a server.
func TestSignals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	dir := t.TempDir()
	up := startProcess(t, dir, "up", "up", "--storage=memory", "--secure-port=0", "--nodes=1", "--data-dir", filepath.Join(dir, "data"))
	if err := up.awaitLine(ctx, "Ctrl-C stops it."); err != nil {
		t.Fatal(err)
	}
	if err := up.terminate(ctx); err != nil {
		t.Error(err)
	}
	kubeconfig := filepath.Join(dir, "data", "admin.kubeconfig")
	for _, name := range components[1:] {
		waiting := startProcess(t, dir, name, name, "--kubeconfig", kubeconfig, "--log-level=debug")
		converge(ctx, t, func() error { return waiting.logged("connection refused") })
		if err := waiting.terminate(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
