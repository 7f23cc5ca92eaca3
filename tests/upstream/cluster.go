package upstream

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
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/pki"
)

const (
	serviceCIDR = "10.96.0.0/16"
	// readyTimeout is how long a server may take to be ready: on a busy machine, minutes.
	readyTimeout = 5 * time.Minute
	// ourNodes are simulated by levelwire kubelet: their containers end when their
	// annotations say so, which a kubelet with a fake runtime has no word for.
	ourNodes = 3
)

// cluster is a server with its components.
type cluster struct {
	server    string // its name
	folder    string // for its files and logs
	binaries  string
	url       string
	authority *pki.Authority
	kubectl   string
	admin     string // kubeconfig of the administrator
	running   []*process
}

func (c *cluster) start(name, program string, args ...string) error {
	p, err := startProcess(c.folder, name, filepath.Join(c.binaries, program), args...)
	if err == nil {
		c.running = append(c.running, p)
	}
	return err
}

// stop ends the components, and then the server.
func (c *cluster) stop() {
	for i := len(c.running) - 1; i >= 0; i-- {
		c.running[i].kill()
	}
	c.running = nil
}

// failure returns an error if a process has ended that should run.
func (c *cluster) failure() error {
	var err error
	for _, p := range c.running {
		err = errors.Join(err, p.failure())
	}
	return err
}

// startLevelwire starts our server. What it calls its authority makes the kubeconfigs.
func startLevelwire(ctx context.Context, c *cluster) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	data := filepath.Join(c.folder, "data")
	c.url, c.admin = "https://127.0.0.1:"+ports[0], filepath.Join(data, "admin.kubeconfig")
	if err := c.start("levelwire", "levelwire", "serve", "--storage=memory", "--data-dir", data, "--secure-port", ports[0]); err != nil {
		return err
	}
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	c.authority, err = pki.LoadAuthority(filepath.Join(data, "pki"), time.Now)
	return err
}

// startKubeAPIServer starts etcd and kube-apiserver, with an authority of ours.
func startKubeAPIServer(ctx context.Context, c *cluster) error {
	ports, err := freePorts(3)
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
	c.url = "https://127.0.0.1:" + ports[2]
	if c.admin, err = c.kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	etcd, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := c.start("etcd", "etcd", "--data-dir", filepath.Join(c.folder, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer); err != nil {
		return err
	}
	if err := c.start("kube-apiserver", "kube-apiserver", "--etcd-servers", etcd, "--authorization-mode", "Node,RBAC",
		"--enable-admission-plugins", "NodeRestriction", "--client-ca-file", filepath.Join(keys, "ca.crt"),
		"--tls-cert-file", filepath.Join(keys, "server.crt"), "--tls-private-key-file", filepath.Join(keys, "server.key"),
		"--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file", accounts, "--service-account-signing-key-file", accounts,
		"--service-cluster-ip-range", serviceCIDR, "--bind-address", "127.0.0.1", "--secure-port", ports[2]); err != nil {
		return err
	}
	return c.awaitReady(ctx)
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

// awaitReady waits until the server is ready, or has ended.
func (c *cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.isReady(ctx)
		if err == nil {
			return nil
		}
		if ended := c.failure(); ended != nil {
			return ended
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %v: %w", c.server, readyTimeout, err)
		}
	}
}

func (c *cluster) isReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.admin) // ours writes the file when it starts
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %s", answer.Status)
	}
	return nil
}

// kubeconfig makes a kubeconfig for a user, and returns its path.
func (c *cluster) kubeconfig(user string, groups ...string) (string, error) {
	pair, err := c.authority.IssueClient(user, groups, 24*time.Hour)
	if err != nil {
		return "", err
	}
	file := filepath.Join(c.folder, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return file, pki.WriteKubeconfig(file, c.url, user, c.authority.CertificatePEM(), pair)
}

// startComponents starts Kubernetes' controller manager and scheduler, one of its kubelets with
// a fake runtime, and ourNodes simulated nodes.
func (c *cluster) startComponents() error {
	authority := filepath.Join(c.folder, "ca.pem")
	if err := os.WriteFile(authority, c.authority.CertificatePEM(), 0o600); err != nil {
		return err
	}
	manager, err := c.kubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	scheduler, err := c.kubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	err = errors.Join(
		c.start("kube-controller-manager", "kube-controller-manager", "--kubeconfig", manager, "--authentication-kubeconfig", manager, "--authorization-kubeconfig", manager,
			"--use-service-account-credentials", "--root-ca-file", authority, "--bind-address=127.0.0.1", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400",
			"--cert-dir", filepath.Join(c.folder, "manager"), "--node-monitor-grace-period=40s"),
		c.start("kube-scheduler", "kube-scheduler", "--kubeconfig", scheduler, "--authentication-kubeconfig", scheduler, "--authorization-kubeconfig", scheduler,
			"--bind-address=127.0.0.1", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400", "--cert-dir", filepath.Join(c.folder, "scheduler")),
		c.startKubelet("hollow-1", "kubemark", "--morph=kubelet", "--name=hollow-1", "--register-with-taints=kubelet=hollow:NoSchedule", "--use-host-image-service=false",
			"--kubelet-port", ports[0], "--kubelet-read-only-port", ports[1], "--cert-dir", filepath.Join(c.folder, "hollow")))
	for i := range ourNodes {
		name := fmt.Sprintf("node-%d", i+1)
		err = errors.Join(err, c.startKubelet(name, "levelwire", "kubelet", "--node-name="+name))
	}
	return err
}

// awaitNodes waits until all nodes are ready, so that no pod is unschedulable because a flow came first.
func (c *cluster) awaitNodes(ctx context.Context) error {
	nodes := []string{"node/hollow-1"}
	for i := range ourNodes {
		nodes = append(nodes, fmt.Sprintf("node/node-%d", i+1))
	}
	for _, condition := range []string{"create", "condition=Ready"} {
		if _, err := c.kubectlIn(ctx, c.folder, "", append([]string{"wait", "--for=" + condition, "--timeout=240s"}, nodes...)...); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) startKubelet(node, program string, args ...string) error {
	config, err := c.kubeconfig("system:node:"+node, "system:nodes")
	if err != nil {
		return err
	}
	return c.start(node, program, append(args, "--kubeconfig", config)...)
}
