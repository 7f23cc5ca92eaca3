package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// hostSettings, in the environment, makes this test binary an API server.
const hostSettings = "LEVELWIRE_HISTORIES_SERVER"

// settings of a server's process.
type settings struct {
	Dir  string
	Port int
	// Listen is where its embedded etcd serves others, so that the store's
	// history can be read, and compacted, past the server; or EtcdServers has a
	// store that outlives it.
	Listen      string
	EtcdServers []string

	Ahead          time.Duration // of the machine's clock
	Tombstones     int
	TombstoneBytes int64
	ExactHistory   bool
}

const (
	// retention and tombstoneAge are in the time of the hosts' clocks.
	retention    = time.Hour
	tombstoneAge = 24 * time.Hour
	// compactions are looked for so often, in real time.
	compactionInterval = 30 * time.Millisecond
)

// runHost is the server's process. It ends with its parent. Its standard input
// is how far its clock is ahead, again and again; its output says that it is
// ready and where its etcd listens.
func runHost(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var ahead atomic.Int64
	ahead.Store(int64(s.Ahead))
	var etcdURL string
	config := server.Config{
		DataDir: s.Dir, SecurePort: s.Port, Storage: server.Etcd, EtcdServers: s.EtcdServers, Logger: slog.New(slog.DiscardHandler),
		CompactionInterval: compactionInterval, CompactionRetention: retention, CompactionRevisions: -1,
		TombstoneAge: tombstoneAge, TombstoneLimit: s.Tombstones, TombstoneBytes: s.TombstoneBytes, ExactHistory: s.ExactHistory,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	if len(s.EtcdServers) == 0 {
		config.Storage = server.Embedded
		config.OpenStore = func(ctx context.Context) (storage.Store, error) {
			store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(s.Dir, "etcd"), ListenClientURL: s.Listen})
			if err == nil {
				etcdURL = store.ClientURL()
			}
			return store, err
		}
	}
	api, err := server.Listen(config)
	if err != nil {
		return err
	}
	go func() {
		decoder := json.NewDecoder(os.Stdin)
		for {
			var d time.Duration
			if decoder.Decode(&d) != nil {
				stop()
				return
			}
			ahead.Store(int64(d))
		}
	}()
	go func() {
		<-api.Ready()
		fmt.Println("ready", etcdURL)
	}()
	return api.Run(ctx)
}

// host is a server as a process of its own, on one port and one directory for
// ever.
type host struct {
	child
	settings settings
	config   *rest.Config
}

func newHost(t *testing.T, s settings) *host {
	t.Helper()
	s.Dir, s.Port = t.TempDir(), reservePort(t)
	if len(s.EtcdServers) == 0 {
		s.Listen = fmt.Sprint("http://127.0.0.1:", reservePort(t))
	}
	h := &host{child: child{name: "the server"}, settings: s}
	t.Cleanup(func() { h.end(t, syscall.SIGTERM) })
	return h
}

// reservePort returns a port for a server that is restarted.
func reservePort(t *testing.T) int {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// start returns when the server is ready.
func (h *host) start(t *testing.T) {
	t.Helper()
	h.launch(t, hostSettings, h.settings)
	url := h.awaitReady(t)
	if h.config != nil {
		return
	}
	h.settings.Listen = url
	var err error
	if h.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(h.settings.Dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	h.config.QPS = -1
}

// address is where it listens.
func (h *host) address() string { return strings.TrimPrefix(h.config.Host, "https://") }

// restart ends the server and starts it again.
func (h *host) restart(t *testing.T, with syscall.Signal) {
	t.Helper()
	h.end(t, with)
	h.start(t)
}

// setClock moves the server's clock to so much ahead of the machine's.
func (h *host) setClock(t *testing.T, ahead time.Duration) {
	t.Helper()
	h.settings.Ahead = ahead
	if h.cmd == nil {
		return
	}
	if err := json.NewEncoder(h.stdin).Encode(ahead); err != nil {
		t.Error(err)
	}
}

// startEtcd runs an etcd that servers can share and that outlives them.
func startEtcd(t *testing.T) (url string) {
	t.Helper()
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: t.TempDir(), ListenClientURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store.ClientURL()
}

// outsider connects to a store past its servers.
func outsider(t *testing.T, urls ...string) *etcd.Store {
	t.Helper()
	store, err := etcd.Open(t.Context(), etcd.Config{Endpoints: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
