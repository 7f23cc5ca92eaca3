package server_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// restrict makes an etcd ask for passwords, and adds a user that may use /registry/
// alone.
func restrict(ctx context.Context, t *testing.T, url string) etcd.Config {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	end := clientv3.GetPrefixRangeEnd("/registry/")
	for _, step := range []func() error{
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "registry"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "registry", "/registry/", end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, "apiserver", "secret"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "apiserver", "registry"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return etcd.Config{Endpoints: []string{url}, Username: "apiserver", Password: "secret"}
}

// compactedAs is a store that another user compacts.
type compactedAs struct {
	storage.Store
	root storage.Compactor
}

func (s compactedAs) Compact(ctx context.Context, at storage.Revision) error {
	return s.root.Compact(ctx, at)
}

// TestCompactionWithoutTombstones: a server whose etcd user may not write deletions
// beside the objects compacts all the same, and says what is lost by that. A user who
// may compact but has no other rights exists before etcd 3.7; here, root compacts.
func TestCompactionWithoutTombstones(t *testing.T) {
	ctx := deadline(t)
	embedded := startEtcd(t, "http://127.0.0.1:0")
	config := restrict(ctx, t, embedded.ClientURL())
	asRoot := config
	asRoot.Username, asRoot.Password = "root", "root"
	root, err := etcd.Open(ctx, asRoot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	log := newLogRecorder()
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: config.Endpoints, Logger: log.logger(),
		OpenStore: func(ctx context.Context) (storage.Store, error) {
			store, err := etcd.Open(ctx, config)
			return compactedAs{store, root}, err
		},
		CompactionInterval: 20 * time.Millisecond, CompactionRetention: 20 * time.Millisecond,
	})
	c := s.client(t)
	version := number(t, create(ctx, t, c, "a").ResourceVersion)
	if err := configMaps(c).Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create(ctx, t, c, "b")
	compactedBeyond(ctx, t, embedded, version)
	log.await(t, "history is compacted without them")
	if n := s.total(ctx, t, "levelwire_compactions_without_tombstones_total"); n == 0 {
		t.Error("the metric is 0")
	}
}

// TestCompactionRefused: where etcd lets only root compact, as etcd 3.7 does, the
// server serves, and says that history grows.
func TestCompactionRefused(t *testing.T) {
	ctx := deadline(t)
	embedded := startEtcd(t, "http://127.0.0.1:0")
	config := restrict(ctx, t, embedded.ClientURL())
	log := newLogRecorder()
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: config.Endpoints, Logger: log.logger(),
		OpenStore:          func(ctx context.Context) (storage.Store, error) { return etcd.Open(ctx, config) },
		CompactionInterval: 20 * time.Millisecond, CompactionRetention: 20 * time.Millisecond,
	})
	c := s.client(t)
	create(ctx, t, c, "a")
	log.await(t, "history was not compacted")
	testwait.Stable(t, "the failures are counted", func() (any, bool) { n := s.total(ctx, t, "levelwire_compaction_failures_total"); return n, n > 0 })
	create(ctx, t, c, "b")
}
