package program

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Upstream is what a relay is started in front of.
type Upstream struct {
	// Kubeconfig is an administrator's.
	Kubeconfig string
	// ClientCA is the file of the authority that certifies users.
	ClientCA string
	// Certificate and Key are the files of the serving certificate, which the relay has, too:
	// clients trust it already.
	Certificate, Key string
}

// Upstream returns what a relay in front of the server has to know.
func (s *Server) Upstream() Upstream {
	pki := filepath.Join(filepath.Dir(s.Kubeconfig), "pki")
	return Upstream{
		Kubeconfig: s.Kubeconfig, ClientCA: filepath.Join(pki, "ca.crt"),
		Certificate: filepath.Join(pki, "server.crt"), Key: filepath.Join(pki, "server.key"),
	}
}

// Relay starts `levelwire relay` in front of a server, as Start does, and returns it with its
// URL. A user of the server is one of the relay, by the same certificate or token.
func Relay(t testing.TB, binary string, of Upstream) (relay *Server, url string) {
	t.Helper()
	dir := t.TempDir()
	// Rights count for as long as they are cached, and tests use them at once.
	relay = Run(t, exec.CommandContext(context.Background(), binary, "relay", "--kubeconfig="+of.Kubeconfig, "--client-ca-file="+of.ClientCA,
		"--tls-cert-file="+of.Certificate, "--tls-private-key-file="+of.Key, "--authorization-cache-ttl=1ms", "--authorization-cache-denied-ttl=1ms",
		"--secure-port=0", "--data-dir="+dir, "--log-level=error"))
	relay.Kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", relay.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return relay, config.Host
}

// At returns a kubeconfig that is like one, with another server.
func At(t testing.TB, url, kubeconfig string) (path string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = url
	}
	path = filepath.Join(t.TempDir(), filepath.Base(kubeconfig))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
