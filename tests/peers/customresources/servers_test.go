package customresources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// TestMain keeps the upstream libraries' chatter out of the tests' output.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

const testTimeout = 2 * time.Minute

// peer is one of the two servers, its store, and an administrator's connection.
type peer struct {
	name   string
	t      *testing.T
	url    string
	client *http.Client
	store  storage.Store
}

// peers starts both servers, each on an etcd of its own, for the rest of the test.
func peers(t *testing.T) []*peer {
	return []*peer{newPeer(t, "upstream", startUpstream), newPeer(t, "levelwire", startOurs)}
}

func newPeer(t *testing.T, name string, start func(t *testing.T, endpoint string) *rest.Config) *peer {
	t.Helper()
	engine, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	store, err := etcd.Open(t.Context(), etcd.Config{Endpoints: []string{engine.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	config := start(t, engine.Endpoint())
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &peer{name: name, t: t, url: config.Host, client: client, store: store}
}

func startUpstream(t *testing.T, endpoint string) *rest.Config {
	t.Helper()
	s, err := upstream.StartCustomResources(context.Background(), upstream.Options{Etcd: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("the upstream server's end: %v", err)
		}
	})
	return s.Config()
}

func startOurs(t *testing.T, endpoint string) *rest.Config {
	t.Helper()
	s, err := server.Listen(server.Config{
		DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{endpoint}, SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("our server's end: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("our server ended before it was ready: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// answer is what a server said.
type answer struct {
	code     int
	warnings []string
	body     any // JSON, without what differs from run to run; or the text
}

// ask sends a request and returns the answer, of which what differs from run to
// run has been taken off.
func (p *peer) ask(r request) answer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testTimeout)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, r.method, p.url+r.path, strings.NewReader(r.body))
	if err != nil {
		p.t.Fatal(err)
	}
	sent.Header.Set("User-Agent", "tester")
	sent.Header.Set("Content-Type", "application/json")
	for name, value := range r.headers {
		sent.Header.Set(name, value)
	}
	response, err := p.client.Do(sent)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	got := answer{code: response.StatusCode, warnings: response.Header.Values("Warning")}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if decoder.Decode(&got.body) != nil {
		got.body = strings.TrimSpace(string(body))
	}
	got.body = stable(got.body)
	return got
}

// volatile are the members whose values differ from run to run.
var volatile = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "deletionTimestamp": true, "lastTransitionTime": true, "time": true,
}

// stable takes off a JSON document what differs from run to run, and what is not to
// be compared: descriptions, the order of verbs, and members that one server leaves
// out if they are empty.
func stable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "description")
		if v["continue"] == "" {
			delete(v, "continue")
		}
		if verbs, ok := v["verbs"].([]any); ok {
			slices.SortFunc(verbs, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		for name, value := range v {
			if _, text := value.(string); text && volatile[name] {
				v[name] = "*"
				continue
			}
			v[name] = stable(value)
		}
		if owners, ok := v["managedFields"].([]any); ok { // which stand in the order of their seconds
			slices.SortFunc(owners, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case []any:
		for i := range v {
			v[i] = stable(v[i])
		}
	}
	return v
}

// until asks again and again until the answer is as wanted.
func (p *peer) until(r request, want func(answer) bool) answer {
	p.t.Helper()
	return testwait.Stable(p.t, fmt.Sprintf("%s: %s %s", p.name, r.method, r.path), func() (answer, bool) {
		got := p.ask(r)
		return got, want(got)
	})
}

// write puts a value into the store, past the server.
func (p *peer) write(key, value string) {
	p.t.Helper()
	if _, err := p.store.Create(p.t.Context(), key, []byte(value), 0); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the value in the store.
func (p *peer) read(key string) []byte {
	p.t.Helper()
	kv, err := p.store.Get(p.t.Context(), key, 0)
	if err != nil {
		p.t.Fatalf("%s: %s: %v", p.name, key, err)
	}
	return kv.Value
}

// stored returns the object in the store.
func (p *peer) stored(key string) any {
	p.t.Helper()
	var v any
	if err := json.Unmarshal(p.read(key), &v); err != nil {
		p.t.Fatal(err)
	}
	return stable(v)
}
