package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/pki"
)

const (
	serviceCIDR = "10.96.0.0/16"
	// readyTimeout is how long a server may take to be ready: on a busy machine, minutes.
	readyTimeout = 5 * time.Minute
)

// Cluster is a server, or several, with components.
type Cluster struct {
	// RestartComponents has a component started again that ends by itself, as one does that has lost its lease, unless it
	// does so again and again. Otherwise that is a Failure. It is to be set before components are started.
	RestartComponents bool
	// ComponentFlags are given to the controller manager and to the scheduler, after their other flags, and take
	// precedence.
	ComponentFlags []string
	// ManagerFlags are given to the controller manager alone, after ComponentFlags.
	ManagerFlags []string
	// ServerFlags are given to our server.
	ServerFlags []string
	// KubeAPIServerFlags are given to kube-apiserver, after its other flags.
	KubeAPIServerFlags []string
	// Sync has etcd sync to the disk, as it does by default. Without, a cluster starts faster, and outlives no crash
	// of the machine.
	Sync bool

	server    string // its name
	folder    string // for its files and logs
	binaries  string
	url       string   // where clients reach the server
	urls      []string // of all servers and of what is in front of them; url is the last one
	authority *pki.Authority
	etcd      string   // its URL
	admin     string   // kubeconfig of the administrator
	nodes     []string // that AwaitNodes waits for

	served map[string]string // the ports at which the controller manager and the scheduler answer

	kubeconfigs string // the folder for those that lead to url
	relayToken  string // of the relays' service account

	// running has all processes in the order in which they were started.
	running []*Process
	// servers are those of running that are API servers, and stores those that keep their objects.
	servers, stores []*Process
	// relays are those of running that are in front of the servers.
	relays []*Process
	// components are those of running that are clients of the server and keep nothing in memory that a restart would lose.
	components []*Process
	release    []func() // ends what is not a process
}

// New returns a cluster that has nothing yet. Server is what it is called in errors; binaries is the folder of
// levelwire, kubectl, etcd and Kubernetes' components, and folder is for files and logs. Both are absolute.
func New(server, binaries, folder string) *Cluster {
	return &Cluster{server: server, binaries: binaries, folder: folder, kubeconfigs: folder}
}

// AdminKubeconfig is the file of an administrator's kubeconfig, once the server has started.
func (c *Cluster) AdminKubeconfig() string { return c.admin }

// Running are the processes that Stop will end, in the order in which they were started: the servers come first.
func (c *Cluster) Running() []*Process { return slices.Clone(c.running) }

// Servers are the API servers, of which there is one unless StartReplicas has started more.
func (c *Cluster) Servers() []*Process { return slices.Clone(c.servers) }

// Stores are the processes that keep the objects of the API servers, where these are others.
func (c *Cluster) Stores() []*Process { return slices.Clone(c.stores) }

// Components are those of the running processes that are clients of the server, and may be killed: what they know is
// on the server.
func (c *Cluster) Components() []*Process { return slices.Clone(c.components) }

// start starts a process.
func (c *Cluster) start(name string, restarts bool, program string, args ...string) (*Process, error) {
	p, err := startProcess(c.folder, name, restarts, filepath.Join(c.binaries, program), args...)
	if err != nil {
		return nil, err
	}
	c.running = append(c.running, p)
	return p, nil
}

// startServer starts an API server.
func (c *Cluster) startServer(name, program string, args ...string) error {
	p, err := c.start(name, false, program, args...)
	if err == nil {
		c.servers = append(c.servers, p)
	}
	return err
}

// startComponent starts a client of the server.
func (c *Cluster) startComponent(name, program string, args ...string) error {
	p, err := c.start(name, c.RestartComponents, program, args...)
	if err == nil {
		c.components = append(c.components, p)
	}
	return err
}

// Stop ends the components, and then the server.
func (c *Cluster) Stop() {
	for _, p := range slices.Backward(c.running) {
		p.stop()
	}
	for _, release := range c.release {
		release()
	}
	c.running, c.servers, c.stores, c.relays, c.components, c.release, c.urls = nil, nil, nil, nil, nil, nil, nil
}

// ports reserves n ports, until the cluster stops: a process that is started again finds its port free.
func (c *Cluster) ports(n int) (ports []string, err error) {
	for range n {
		port, release, err := faultnet.ReservePort()
		if err != nil {
			return nil, err
		}
		c.release = append(c.release, release)
		ports = append(ports, strconv.Itoa(port))
	}
	return ports, nil
}

// Failure returns an error if a process has ended that should run.
func (c *Cluster) Failure() error {
	var err error
	for _, p := range c.running {
		err = errors.Join(err, p.failure())
	}
	return err
}

// AwaitFailure waits until Failure returns an error, and returns it, or nil at the end of the context.
func (c *Cluster) AwaitFailure(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := c.Failure(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// StartLevelwire starts our server with storage in memory: its objects are gone when it is killed.
func (c *Cluster) StartLevelwire(ctx context.Context) error {
	return c.startLevelwire(ctx, "levelwire", "serve", "--storage=memory")
}

// StartDurable starts our server with embedded storage on disk, which outlives the process.
func (c *Cluster) StartDurable(ctx context.Context) error {
	return c.startLevelwire(ctx, "levelwire", "serve", "--storage=embedded")
}

// StartWhole starts our server with our controllers, scheduler and simulated nodes, in one process.
func (c *Cluster) StartWhole(ctx context.Context) error {
	c.addNodes()
	return c.startLevelwire(ctx, "levelwire", "up", "--storage=memory", "--nodes", strconv.Itoa(simulatedNodes))
}

// startLevelwire runs a command of ours that starts a server, and waits until that is ready. What it calls its authority
// makes the kubeconfigs.
func (c *Cluster) startLevelwire(ctx context.Context, name, command string, flags ...string) error {
	ports, err := c.ports(1)
	if err != nil {
		return err
	}
	data := c.data(name)
	c.admin = filepath.Join(data, "admin.kubeconfig")
	c.serveAt("https://127.0.0.1:" + ports[0])
	args := append([]string{command, "--data-dir", data, "--secure-port", ports[0]}, slices.Concat(flags, c.ServerFlags)...)
	if err := c.startServer(name, "levelwire", args...); err != nil {
		return err
	}
	if err := c.AwaitReady(ctx); err != nil {
		return err
	}
	c.authority, err = pki.LoadAuthority(filepath.Join(data, "pki"), time.Now)
	return err
}

// data is the data folder of a server of ours.
func (c *Cluster) data(name string) string { return filepath.Join(c.folder, name) }

// StartKubeAPIServer starts etcd and kube-apiserver, with an authority of ours.
func (c *Cluster) StartKubeAPIServer(ctx context.Context) error {
	ports, err := c.ports(1)
	if err != nil {
		return err
	}
	keys := filepath.Join(c.folder, "pki")
	if c.authority, err = pki.LoadOrCreateAuthority(keys, time.Now); err != nil {
		return err
	}
	if _, err := c.authority.Serving(keys, []string{"127.0.0.1"}); err != nil {
		return err
	}
	accounts := filepath.Join(keys, "service-accounts.key")
	if err := writeAccountsKey(accounts); err != nil {
		return err
	}
	c.serveAt("https://127.0.0.1:" + ports[0])
	if c.admin, err = c.kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	etcd, err := c.startEtcd()
	if err != nil {
		return err
	}
	if err := c.startServer("kube-apiserver", "kube-apiserver", append([]string{"--etcd-servers", etcd, "--authorization-mode", "Node,RBAC",
		"--enable-admission-plugins", "NodeRestriction", "--allow-privileged", "--client-ca-file", filepath.Join(keys, "ca.crt"),
		"--tls-cert-file", filepath.Join(keys, "server.crt"), "--tls-private-key-file", filepath.Join(keys, "server.key"),
		"--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file", accounts, "--service-account-signing-key-file", accounts,
		"--service-cluster-ip-range", serviceCIDR, "--bind-address", "127.0.0.1", "--secure-port", ports[0]}, c.KubeAPIServerFlags...)...); err != nil {
		return err
	}
	return c.AwaitReady(ctx)
}

// startEtcd starts etcd, and returns its URL.
func (c *Cluster) startEtcd() (string, error) {
	ports, err := c.ports(2)
	if err != nil {
		return "", err
	}
	etcd, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	p, err := c.start("etcd", false, "etcd", "--data-dir", filepath.Join(c.folder, "etcd"), "--unsafe-no-fsync="+strconv.FormatBool(!c.Sync),
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err == nil {
		c.stores, c.etcd = append(c.stores, p), etcd
	}
	return etcd, err
}

// writeAccountsKey makes the key that signs the tokens of service accounts, in the form in which
// kube-apiserver reads its public part, too.
func writeAccountsKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

// serveAt has clients that are started from now on reach the server at a URL.
func (c *Cluster) serveAt(url string) {
	c.url, c.urls = url, append(c.urls, url)
}

// AwaitReady waits until the server is ready, and each relay in front of it. Of one that was killed, its next run is: neither the killed
// run counts, nor a relay, which is ready for a while without its upstream. It returns an error if a process has ended that should
// run.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, p := range slices.Concat(c.servers, c.relays) {
		if err := p.awaitNext(ctx); err != nil {
			return err
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.isReady(ctx)
		if err == nil {
			return nil
		}
		if ended := c.Failure(); ended != nil {
			return ended
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %v: %w", c.server, readyTimeout, err)
		}
	}
}

func (c *Cluster) isReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.admin) // ours writes the file when it starts
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, url := range c.urls {
		if err := isReadyAt(ctx, client, url); err != nil {
			return err
		}
	}
	return nil
}

func isReadyAt(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz: %s", url, answer.Status)
	}
	return nil
}

// kubeconfig makes a kubeconfig for a user, and returns its path.
func (c *Cluster) kubeconfig(user string, groups ...string) (string, error) {
	pair, err := c.authority.IssueClient(user, groups, 24*time.Hour)
	if err != nil {
		return "", err
	}
	file := filepath.Join(c.kubeconfigs, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return file, pki.WriteKubeconfig(file, c.url, user, c.authority.CertificatePEM(), pair)
}
