package soak

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/tests/workload"
)

// fleet is several servers in this process on one etcd, and a balancer in front
// of them.
type fleet struct {
	etcd     *etcd.Store // what the servers reach by its URL
	members  []*member
	balancer *faultnet.Balancer
	config   *rest.Config // of clients of the balancer
}

// member is one of the servers, which come and go.
type member struct {
	config  server.Config
	lag     lag
	address string
	cancel  context.CancelFunc
	ended   chan error // nil: it does not run
}

// newFleet starts n servers and puts them behind a balancer. change completes
// the configuration of each.
func newFleet(t *testing.T, n int, change func(*server.Config)) *fleet {
	t.Helper()
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: t.TempDir(), ListenClientURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{etcd: store}
	t.Cleanup(func() {
		for _, m := range f.members {
			m.stop(t)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var addresses []string
	for range n {
		m := f.add(t, change)
		m.start(t)
		addresses = append(addresses, m.address)
	}
	if f.balancer, err = faultnet.NewBalancer(addresses...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.balancer.Close(); err != nil {
			t.Error(err)
		}
	})
	f.config = f.members[0].client(t)
	f.config.Host = "https://" + f.balancer.Addr()
	return f
}

// add makes a server that does not run yet. All have the same authorities, as
// a client must not care which it speaks to.
func (f *fleet) add(t *testing.T, change func(*server.Config)) *member {
	t.Helper()
	m := &member{config: server.Config{
		DataDir: t.TempDir(), SecurePort: server.AnyPort, Storage: server.Etcd, EtcdServers: []string{f.etcd.ClientURL()},
		Logger: slog.New(slog.DiscardHandler),
	}}
	if len(f.members) > 0 {
		if err := os.CopyFS(filepath.Join(m.config.DataDir, "pki"), os.DirFS(filepath.Join(f.members[0].config.DataDir, "pki"))); err != nil {
			t.Fatal(err)
		}
	}
	m.config.OpenStore = func(ctx context.Context) (storage.Store, error) {
		store, err := etcd.Open(ctx, etcd.Config{Endpoints: m.config.EtcdServers})
		if err != nil {
			return nil, err
		}
		return lagging{store, &m.lag}, nil
	}
	change(&m.config)
	f.members = append(f.members, m)
	return m
}

// start returns when the server is ready.
func (m *member) start(t *testing.T) {
	t.Helper()
	s, err := server.Listen(m.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.address, m.cancel, m.ended = strings.TrimPrefix(s.URL(), "https://"), cancel, make(chan error, 1)
	ended := m.ended
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		m.ended = nil
		t.Fatalf("the server ended: %v", err)
	case <-time.After(workload.Timeout):
		t.Fatal("the server does not get ready")
	}
}

// stop ends the server in order.
func (m *member) stop(t *testing.T) {
	t.Helper()
	if m.ended == nil {
		return
	}
	m.lag.set(false)
	m.cancel()
	select {
	case err := <-m.ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(workload.Timeout):
		t.Fatal("the server does not stop")
	}
	m.ended = nil
}

// client is the configuration of clients of this server alone.
func (m *member) client(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(m.config.DataDir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// restart ends a server, as it should or all at once, and starts it again
// elsewhere. If it is killed, it sends its clients nothing more.
func (f *fleet) restart(t *testing.T, m *member, kill bool) {
	t.Helper()
	old := m.address
	if kill {
		f.balancer.Drain(old, true)
		f.balancer.Kill(old)
	}
	m.stop(t)
	m.start(t)
	f.balancer.Replace(old, m.address)
	f.balancer.Drain(m.address, false)
}

// only leaves one server to the clients, which have to leave the others at once.
func (f *fleet) only(m *member) {
	for _, other := range f.members {
		f.balancer.Drain(other.address, other != m)
		if other != m {
			f.balancer.Kill(other.address)
		}
	}
}

// all makes every server take clients.
func (f *fleet) all() {
	for _, m := range f.members {
		f.balancer.Drain(m.address, false)
	}
}

// lag holds back the store's changes that a server gets.
type lag struct {
	mu   sync.Mutex
	free chan struct{} // nil: there is none
}

func (l *lag) set(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free != nil && !on {
		close(l.free)
		l.free = nil
	} else if l.free == nil && on {
		l.free = make(chan struct{})
	}
}

// wait returns at once if there is no lag.
func (l *lag) wait(ctx context.Context) error {
	l.mu.Lock()
	free := l.free
	l.mu.Unlock()
	if free == nil {
		return nil
	}
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lagging is a store whose streams may lag.
type lagging struct {
	storage.Store
	lag *lag
}

func (s lagging) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := s.Store.Watch(ctx, prefix, after)
	if err != nil {
		return nil, err
	}
	return laggingStream{stream, ctx, s.lag}, nil
}

type laggingStream struct {
	storage.Stream
	ctx context.Context
	lag *lag
}

func (s laggingStream) Next() (storage.Batch, error) {
	batch, err := s.Stream.Next()
	if err == nil {
		err = s.lag.wait(s.ctx)
	}
	return batch, err
}
