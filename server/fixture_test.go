package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) {
	// etcd leaves these goroutines behind; they belong to files that are closed.
	goleak.VerifyTestMain(m,
		// What deletes old audit logs lives as long as the process.
		goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/wal.(*filePipeline).run"))
}

// testTimeout is how long a test may take on the slowest machine.
const testTimeout = 3 * time.Minute

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// logRecorder keeps log lines, and lets a test wait for one.
type logRecorder struct{ lines testwait.History[string] }

func newLogRecorder() *logRecorder { return &logRecorder{} }

func (j *logRecorder) Write(p []byte) (int, error) {
	j.lines.Add(string(p))
	return len(p), nil
}

func (j *logRecorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// await waits until the log contains text.
func (j *logRecorder) await(t *testing.T, text string) {
	t.Helper()
	testwait.Events(t, fmt.Sprintf("the log says %q", text), &j.lines, testwait.Last(func(line string) bool { return strings.Contains(line, text) }))
}

// running is a running server.
type running struct {
	*server.Server
	cancel context.CancelFunc
	ended  chan error
	once   sync.Once
	err    error
}

// launch starts a server without waiting for it.
func launch(t *testing.T, config server.Config) *running {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.SecurePort == 0 {
		config.SecurePort = server.AnyPort
	}
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	t.Cleanup(func() { r.stop(t) })
	return r
}

// start starts a server and waits until it is ready.
func start(t *testing.T, config server.Config) *running {
	t.Helper()
	r := launch(t, config)
	r.awaitReady(deadline(t), t)
	return r
}

func (r *running) awaitReady(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-r.Ready():
	case err := <-r.ended:
		r.ended <- nil // for stop
		t.Fatalf("the server ended: %v", err)
	case <-ctx.Done():
		t.Fatal("the server does not get ready")
	}
}

// stop shuts the server down.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.once.Do(func() {
		r.cancel()
		select {
		case r.err = <-r.ended:
		case <-time.After(testTimeout):
			t.Error("the server does not stop")
		}
	})
	if r.err != nil {
		t.Errorf("the server ended with %v", r.err)
	}
}

// client returns a client of the server's kubeconfig.
func (r *running) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.FromKubeconfig(r.Kubeconfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func configMaps(c *client.Client) client.Resource[*corev1.ConfigMap] {
	return client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault)
}

func create(ctx context.Context, t *testing.T, c *client.Client, name string) *corev1.ConfigMap {
	t.Helper()
	obj, err := configMaps(c).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj
}
