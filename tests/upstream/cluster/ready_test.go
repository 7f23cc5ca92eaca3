package cluster

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// answering starts what answers /readyz in place of a process, with 503 so many times first, and returns its address and
// what says how often it was asked.
func answering(t *testing.T, refusals int64) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= refusals {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// clusterOf returns a cluster whose server is a process, and answers at an address.
func clusterOf(t *testing.T, server *Process, url string) *Cluster {
	t.Helper()
	folder := t.TempDir()
	c := New("server", folder, folder)
	c.running, c.servers = []*Process{server}, []*Process{server}
	c.admin = filepath.Join(folder, "admin.kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: url}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, c.admin); err != nil {
		t.Fatal(err)
	}
	c.serveAt(url)
	return c
}

// TestAwaitReadyAfterAKill: what the killed run, which may not have gone yet, answers does not count.
func TestAwaitReadyAfterAKill(t *testing.T) {
	p, _ := shell(t, "exec sleep 3600", false)
	url, _ := answering(t, 0)
	c := clusterOf(t, p, url)
	for range 5 {
		killed := p.PID()
		p.Kill()
		if err := c.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.PID() == killed {
			t.Error("the run that was killed counts as ready")
		}
	}
}

// TestAwaitReadyBehindARelay: that a relay is ready, which serves from its caches while its upstream is away, does not say that the
// server is.
func TestAwaitReadyBehindARelay(t *testing.T) {
	p, _ := shell(t, "exec sleep 3600", false)
	const refusals = 2
	server, asked := answering(t, refusals)
	relay, relayAsked := answering(t, 0)
	c := clusterOf(t, p, server)
	c.serveAt(relay)
	if err := c.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n <= refusals {
		t.Errorf("the server was asked %d times, and was not ready", n)
	}
	if relayAsked.Load() == 0 || c.URL() != relay {
		t.Errorf("the relay was asked %d times; clients reach %s", relayAsked.Load(), c.URL())
	}
}

// TestAwaitReadyOfAServerThatHasEnded fails: no run follows that could be waited for.
func TestAwaitReadyOfAServerThatHasEnded(t *testing.T) {
	p, _ := shell(t, "exit 3", false)
	<-p.ended
	p.Kill()
	url, _ := answering(t, 0)
	if err := clusterOf(t, p, url).AwaitReady(t.Context()); err == nil {
		t.Error("it is ready")
	}
}
