package server_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// reservePort returns a port for what is started later, or again.
func reservePort(t *testing.T) int {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// unusedAddress returns an address on which nothing listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(reservePort(t)))
}

// startEtcd runs an etcd that serves clients at url.
func startEtcd(t *testing.T, url string) *etcd.Store {
	t.Helper()
	store, err := etcd.Embed(deadline(t), etcd.EmbedConfig{Dir: t.TempDir(), ListenClientURL: url})
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

// TestExternalEtcd: while etcd is down the server waits and says so; once it
// is up it serves, and a second server on the same etcd sees the same objects.
func TestExternalEtcd(t *testing.T) {
	ctx := deadline(t)
	url := "http://" + unusedAddress(t)
	log := newLogRecorder()
	config := func() server.Config {
		return server.Config{DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{url}, Logger: log.logger()}
	}
	first := launch(t, config())
	log.await(t, "waiting for etcd")
	log.await(t, url)
	select {
	case <-first.Ready():
		t.Fatal("ready without a store")
	default:
	}
	startEtcd(t, url)
	first.awaitReady(ctx, t)
	create(ctx, t, first.client(t), "shared")

	second := start(t, config())
	if _, err := configMaps(second.client(t)).Get(ctx, "shared", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	first.stop(t)
	create(ctx, t, second.client(t), "after-the-first-has-gone")
}

// TestCompaction: the store is compacted when the flags say so, and not before.
func TestCompaction(t *testing.T) {
	for name, test := range map[string]struct {
		interval, retention time.Duration
		revisions           int
		goes                bool
	}{
		"short":           {20 * time.Millisecond, 20 * time.Millisecond, 0, true},
		"long retention":  {20 * time.Millisecond, time.Hour, 0, false},
		"many revisions":  {20 * time.Millisecond, 20 * time.Millisecond, 1000, false},
		"long interval":   {time.Hour, 20 * time.Millisecond, 0, false},
		"no compaction":   {-1, 20 * time.Millisecond, 0, false},
		"both as default": {0, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := deadline(t)
			store := startEtcd(t, "http://127.0.0.1:0")
			s := start(t, server.Config{
				DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{store.ClientURL()},
				CompactionInterval: test.interval, CompactionRetention: test.retention, CompactionRevisions: test.revisions,
			})
			client := s.client(t)
			old := storage.Revision(number(t, create(ctx, t, client, "old").ResourceVersion))
			create(ctx, t, client, "new")
			gone := func() bool {
				_, err := store.List(ctx, "/registry/configmaps/", storage.ListOptions{At: old})
				if err != nil && !errors.Is(err, storage.ErrCompacted) {
					t.Fatal(err)
				}
				return err != nil
			}
			if test.goes {
				testwait.Stable(t, "the old version is compacted", func() (any, bool) { is := gone(); return is, is })
				return
			}
			<-time.After(400 * time.Millisecond) // twenty of the short intervals, in which nothing happens
			if gone() {
				t.Error("the old version is compacted")
			}
		})
	}
}
