package differential

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// Both servers have these.
const (
	serviceCIDR = "10.96.0.0/16"
	adminToken  = "admin"
	adminTokens = adminToken + `,admin,admin,"system:masters"` + "\n"
)

// startTimeout is how long kube-apiserver may take to become ready: on a busy machine,
// minutes.
const startTimeout = 5 * time.Minute

// end is the end of a process.
type end struct{ why error }

// startJudge starts the etcd and kube-apiserver of a folder, with files in another one and logs in a
// third, and with some feature gates open, and waits until they serve. They end with this process, or
// when stop is called.
func startJudge(ctx context.Context, binaries, folder, logs string, gates []string) (s *side, stop func(), err error) {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan end, 2)
	var running []*exec.Cmd
	stop = func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
		}
		for range running {
			<-ended
		}
		running = nil
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	start := func(name string, args []string) error {
		log, err := os.Create(filepath.Join(logs, name+".log"))
		if err != nil {
			return err
		}
		defer log.Close()
		cmd := exec.CommandContext(ctx, filepath.Join(binaries, name), args...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := childprocess.Start(cmd); err != nil {
			return fmt.Errorf("start %s (make judge builds it): %w", name, err)
		}
		running = append(running, cmd)
		go func() { ended <- end{fmt.Errorf("%s ended: %w; see %s", name, cmd.Wait(), log.Name())} }()
		return nil
	}

	etcd := "http://127.0.0.1:" + strconv.Itoa(ports[0])
	peer := "http://127.0.0.1:" + strconv.Itoa(ports[1])
	if err := start("etcd", []string{
		"--data-dir", filepath.Join(folder, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
	}); err != nil {
		return nil, nil, err
	}
	flags, err := apiserverFlags(folder, etcd, ports[2])
	if err != nil {
		return nil, nil, err
	}
	for _, gate := range gates {
		flags = append(flags, "--feature-gates="+gate+"=true")
	}
	if len(gates) > 0 { // CoordinatedLeaderElection watches LeaseCandidates
		flags = append(flags, "--runtime-config=coordination.k8s.io/v1beta1=true")
	}
	if err := start("kube-apiserver", flags); err != nil {
		return nil, nil, err
	}
	s = &side{
		name: "kube-apiserver", url: "https://127.0.0.1:" + strconv.Itoa(ports[2]), token: adminToken,
		// The certificate is the server's own, made a moment ago.
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}},
	}
	return s, stop, awaitReady(ctx, s, ended)
}

// apiserverFlags writes the files that kube-apiserver needs.
func apiserverFlags(folder, etcd string, port int) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	keyFile, tokenFile := filepath.Join(folder, "service-accounts.key"), filepath.Join(folder, "tokens.csv")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := errors.Join(os.WriteFile(keyFile, pem.EncodeToMemory(block), 0o600), os.WriteFile(tokenFile, []byte(adminTokens), 0o600)); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers", etcd, "--authorization-mode", "AlwaysAllow", "--token-auth-file", tokenFile,
		"--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file", keyFile, "--service-account-signing-key-file", keyFile,
		"--allow-privileged=true",      // as in every cluster with a network; here there is no such flag
		"--etcd-compaction-interval=0", // old versions are asked about, however long the comparison takes
		"--service-cluster-ip-range", serviceCIDR, "--cert-dir", filepath.Join(folder, "certificates"),
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port),
	}, nil
}

// freePorts returns ports of the loopback interface on which nothing listens.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener // open until the end, so that each port is another one
	var failed error
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			failed = err
			break
		}
		listeners = append(listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	for _, listener := range listeners {
		failed = errors.Join(failed, listener.Close())
	}
	return ports, failed
}

// awaitReady waits until the server is ready, or has ended.
func awaitReady(ctx context.Context, s *side, ended chan end) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.read(ctx, "/readyz", asText)
		if err == nil {
			return nil
		}
		select {
		case end := <-ended:
			ended <- end // for stop
			return end.why
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %v: %w", s.name, startTimeout, err)
		case <-tick.C:
		}
	}
}
