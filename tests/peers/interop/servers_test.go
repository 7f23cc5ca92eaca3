package interop

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// TestMain keeps the upstream libraries' chatter out of the tests' output, and
// lets more scenarios be played side by side than there are processors: most of
// their time they wait for periods that cannot be shorter than a second.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

// A host is an API server of either make that can be stopped and started again
// on the same address and data.
type host interface {
	// start runs the server until stop and returns how to reach it.
	start(t *testing.T) *rest.Config
	stop(t *testing.T)
}

// makes are the servers under test, by name.
var makes = map[string]func(t *testing.T, storage server.Storage) host{
	"our server": func(t *testing.T, storage server.Storage) host {
		return &ourHost{dir: t.TempDir(), storage: storage, port: reservePort(t)}
	},
	"upstream server": func(t *testing.T, _ server.Storage) host {
		etcd, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(etcd.Close)
		address := fmt.Sprint("127.0.0.1:", reservePort(t))
		return &upstreamHost{options: upstream.Options{Address: address, Etcd: etcd.Endpoint(), CertDir: t.TempDir(), Protobuf: true}}
	},
}

// reservePort returns a port for a server that may be restarted.
func reservePort(t *testing.T) int {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// serve starts a server for the rest of the test.
func serve(t *testing.T, name string, storage server.Storage) *rest.Config {
	t.Helper()
	h := makes[name](t, storage)
	config := h.start(t)
	t.Cleanup(func() { h.stop(t) })
	return config
}

// serveAll starts one server of each make.
func serveAll(t *testing.T, storage server.Storage) map[string]*rest.Config {
	t.Helper()
	configs := map[string]*rest.Config{}
	for name := range makes {
		configs[name] = serve(t, name, storage)
	}
	return configs
}

type ourHost struct {
	dir     string
	storage server.Storage
	port    int
	cancel  context.CancelFunc
	done    chan error
}

func (h *ourHost) start(t *testing.T) *rest.Config {
	t.Helper()
	s, err := server.Listen(server.Config{
		DataDir: h.dir, Storage: h.storage, SecurePort: h.port, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.done = cancel, make(chan error, 1)
	go func() { h.done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-h.done:
		t.Fatalf("our server ended before it was ready: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (h *ourHost) stop(t *testing.T) {
	t.Helper()
	h.cancel()
	if err := <-h.done; err != nil {
		t.Errorf("our server's end: %v", err)
	}
}

type upstreamHost struct {
	options upstream.Options
	server  *upstream.Server
}

func (h *upstreamHost) start(t *testing.T) *rest.Config {
	t.Helper()
	s, err := upstream.Start(context.Background(), h.options)
	if err != nil {
		t.Fatal(err)
	}
	h.server = s
	return s.Config()
}

func (h *upstreamHost) stop(t *testing.T) {
	t.Helper()
	if err := h.server.Stop(); err != nil {
		t.Errorf("the upstream server's end: %v", err)
	}
}

// clientset is client-go's typed client, with which all tests write.
func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newNamespace makes a namespace of its own for a test.
func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}
