//go:build linux

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/tests/workload"
)

// size is how many members and how many servers there are.
const size = 3

// cluster is the members, the servers, and the balancer that clients use.
type cluster struct {
	network  *network
	members  []*member
	servers  []*apiserver
	upstream *upstream // not nil: servers are relays in front of it, and there are no members
	balancer *faultnet.Balancer
	config   *rest.Config // of clients of the balancer
	etcd     *etcd.Store  // as a server opens it, for the test's own eyes
}

// member is one of etcd's.
type member struct {
	*process
	dir       string
	program   string
	quota     int64 // 0: etcd's own
	peerURL   string
	clientURL string
	admin     *clientv3.Client // of this member alone
}

// apiserver is one `levelwire serve`.
type apiserver struct {
	*process
	dir     string
	address string
	config  *rest.Config // of clients of this server alone
	health  *health
}

// options of a cluster.
type options struct {
	namespaces bool
	etcd       string   // the members' program, unless it is that of go.mod
	quota      int64    // of the first member
	arguments  []string // of the servers
	compacts   bool     // by these
	closes     bool     // the balancer closes connections to servers that are not ready
}

// newCluster returns when all servers are ready.
func newCluster(t *testing.T, p programs, o options) *cluster {
	t.Helper()
	c := &cluster{network: newNetwork(t, o.namespaces)}
	if o.etcd == "" {
		o.etcd = p.etcd
	}
	for i := range size {
		m := c.newMember(t, i, o.etcd)
		if i == 0 {
			m.quota = o.quota
		}
	}
	for _, m := range c.members {
		m.start(t)
	}
	for _, m := range c.members {
		m.awaitReady(t)
	}
	var err error
	if c.etcd, err = etcd.Open(t.Context(), etcd.Config{Endpoints: c.endpoints()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.etcd.Close() })
	for i := range size {
		c.newServer(t, i, p.levelwire, o.arguments)
	}
	c.balance(t, o.closes)
	return c
}

// balance has a balancer in front of the servers.
func (c *cluster) balance(t *testing.T, closes bool) {
	t.Helper()
	var targets []string
	for _, s := range c.servers {
		targets = append(targets, s.address)
	}
	var err error
	if c.balancer, err = faultnet.NewBalancer(targets...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.balancer.Close(); err != nil {
			t.Error(err)
		}
	})
	c.config = rest.CopyConfig(c.servers[0].config)
	c.config.Host = "https://" + c.balancer.Addr()
	for _, s := range c.servers {
		s.health = watchHealth(t, s, c.balancer, closes)
	}
}

func (c *cluster) newMember(t *testing.T, i int, program string) *member {
	t.Helper()
	h := c.network.host(t, peers, store)
	m := &member{dir: t.TempDir(), program: program, peerURL: "http://" + h.port(t, peers, 2380), clientURL: "http://" + h.port(t, store, 2379)}
	m.process = newProcess(t, fmt.Sprintf("etcd-%d", i), h, "ready", func() []string {
		return []string{m.program, m.configure(t, c.members)}
	})
	var err error
	if m.admin, err = clientv3.New(clientv3.Config{Endpoints: []string{m.clientURL}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.admin.Close() })
	c.members = append(c.members, m)
	return m
}

// configure writes the file that a member is configured with.
func (m *member) configure(t *testing.T, all []*member) (path string) {
	t.Helper()
	var initial []string
	for _, each := range all {
		initial = append(initial, each.name+"="+each.peerURL)
	}
	var b bytes.Buffer
	for _, setting := range [][2]string{
		{"name", m.name}, {"data-dir", filepath.Join(m.dir, "data")}, {"log-level", "warn"},
		{"listen-peer-urls", m.peerURL}, {"initial-advertise-peer-urls", m.peerURL},
		{"listen-client-urls", m.clientURL}, {"advertise-client-urls", m.clientURL},
		{"initial-cluster", strings.Join(initial, ",")}, {"initial-cluster-state", "new"},
		{"quota-backend-bytes", strconv.FormatInt(m.quota, 10)},
	} {
		fmt.Fprintf(&b, "%s: %s\n", setting[0], setting[1])
	}
	path = filepath.Join(m.dir, "etcd.yaml")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *cluster) endpoints() (urls []string) {
	for _, m := range c.members {
		urls = append(urls, m.clientURL)
	}
	return urls
}

// newServer starts a server, and returns when it is ready. The first makes the
// authorities that all have.
func (c *cluster) newServer(t *testing.T, i int, program string, arguments []string) {
	t.Helper()
	h := c.network.host(t, store, front)
	s := &apiserver{dir: t.TempDir(), address: h.port(t, front, 6443)}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	if i > 0 {
		if err := os.CopyFS(filepath.Join(s.dir, "pki"), os.DirFS(filepath.Join(c.servers[0].dir, "pki"))); err != nil {
			t.Fatal(err)
		}
	}
	s.process = newProcess(t, fmt.Sprintf("levelwire-%d", i), h, "ready at", func() []string {
		return append([]string{
			program, "serve", "--data-dir=" + s.dir, "--etcd-servers=" + strings.Join(c.endpoints(), ","),
			"--bind-address=" + host, "--secure-port=" + port, "--tls-hosts=127.0.0.1", "--log-level=info",
		}, arguments...)
	})
	c.servers = append(c.servers, s)
	s.start(t)
	s.awaitReady(t)
	if s.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
}

// version is the release of etcd that the member runs.
func (m *member) version(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := m.admin.Status(ctx, m.clientURL)
	if err != nil {
		t.Fatal(err)
	}
	return status.Version
}

// leader is the number of the member that leads, as most of them say.
func (c *cluster) leader(t *testing.T) int {
	t.Helper()
	found := -1
	workload.Await(t, func() string { return "a leader" }, func() bool {
		for i, m := range c.members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) //passes: the member may be gone, and is asked again
			status, err := m.admin.Status(ctx, m.clientURL)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				found = i
				return true
			}
		}
		return false
	})
	return found
}
