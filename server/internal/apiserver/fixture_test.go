package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(fanOutChild); args != "" {
		if err := fanOutClients(args); err != nil {
			fmt.Fprintln(os.Stderr, "clients of the benchmark:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// cluster is a whole read path over a store in memory: caches, their feed, and
// a server that listens with TLS on the loopback.
type cluster struct {
	t      testing.TB
	store  *memory.Store
	table  *resource.Table
	pods   *resource.Resource
	caches map[*resource.Resource]*watchcache.Cache
	server *Server
	url    string
	http2  *http.Client
	http1  *http.Client
	client *http.Client // of get, do and watch: http2 unless a test says otherwise
	// authority is whose certificates the clients trust.
	authority *x509.Certificate
	stop      func()        // drains the server and waits for it
	rbac      *rbac.Index   // nil unless the setup says so
	visible   *rbac.History // nil unless the setup says so
	fairness  *flowcontrol.Controller
}

const testToken = "a-token-for-tests"

// setup changes what a cluster is made of before it starts.
type setup struct {
	config Config
	cache  watchcache.Options
	unfed  bool // caches are never filled
	rbac   bool // authorizes by roles and bindings
	seats  int  // of priority and fairness; 0: it is off
	// visible offers what users may see; it goes with rbac.
	visible bool
	// history is written to the store before the server starts, as by one
	// that ran before it.
	history func(*cluster)
}

func newCluster(t testing.TB, change ...func(*setup)) *cluster {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	c := &cluster{t: t, store: store, table: builtin.Table(), caches: map[*resource.Resource]*watchcache.Cache{}}
	c.pods = c.table.Lookup("", "v1", "pods")
	// No limit of the server ends what a busy machine takes longer for, unless the test is about it.
	build := setup{cache: watchcache.Options{FreshnessWait: time.Minute}}
	build.config = Config{
		CatchUpTimeout: time.Minute, RequestTimeout: 3 * time.Minute, WriteTimeout: 3 * time.Minute,
		Resources: c.table, Store: store, Tokens: auth.NewStaticTokens(map[string]auth.User{testToken: {Name: "tester", Groups: []string{"testers"}}}),
		Cache: func(stored *resource.Resource) *watchcache.Cache { return c.caches[stored] },
	}
	for _, f := range change {
		f(&build)
	}
	var all []*watchcache.Cache
	for _, res := range c.table.All() {
		if res.Storage == nil {
			c.caches[res] = watchcache.New(res, build.cache)
			all = append(all, c.caches[res])
		}
	}
	set, err := registry.NewSet(registry.Config{Store: store, Resources: c.table, Cache: build.config.Cache})
	must(t, err)
	build.config.Registry = set
	if build.rbac || build.visible {
		c.rbac, err = rbac.NewIndex(set, slog.New(slog.DiscardHandler))
		must(t, err)
	}
	if build.rbac {
		build.config.Authorizer = c.rbac
	}
	if build.visible {
		c.visible = c.rbac.NewHistory()
		build.config.Visible = c.visible
	}
	if build.seats > 0 {
		c.fairness, err = flowcontrol.New(set, flowcontrol.Options{Seats: build.seats, QueueWait: 3 * time.Minute, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		build.config.Fairness = c.fairness
	}
	c.server, err = New(build.config)
	must(t, err)
	if build.history != nil {
		build.history(c)
	}
	c.start(all, build.unfed)
	return c
}

// start runs the feed and the server until the test ends.
func (c *cluster) start(all []*watchcache.Cache, unfed bool) {
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(c.t, err)
	authority, err := pki.LoadOrCreateAuthority(c.t.TempDir(), time.Now)
	must(c.t, err)
	serving, err := authority.Serving(c.t.TempDir(), []string{"127.0.0.1"})
	must(c.t, err)
	c.url = "https://" + listener.Addr().String()
	c.authority = authority.Certificate()
	c.http2, c.http1 = clients(c.authority)
	c.client = c.http2
	fed, served := make(chan error, 1), make(chan error, 1)
	var following sync.WaitGroup
	if c.rbac != nil {
		following.Go(func() { c.rbac.Run(ctx) })
	}
	if c.visible != nil {
		following.Go(func() { c.visible.Run(ctx) })
	}
	if c.fairness != nil {
		following.Go(func() { c.fairness.Run(ctx) })
	}
	go func() {
		if unfed {
			fed <- nil
			return
		}
		fed <- feed.New(c.store, all, feed.Options{}).Run(ctx)
	}()
	go func() {
		served <- c.server.Serve(ctx, listener, &tls.Config{Certificates: []tls.Certificate{serving.TLS()}})
	}()
	if !unfed {
		for _, cache := range all {
			must(c.t, cache.WaitReady(ctx))
		}
		if c.fairness != nil {
			must(c.t, c.fairness.Ensure(ctx))
			// Levels are created before schemas.
			for group, schema := range map[string]string{auth.Masters: "exempt", "system:nodes": "system-nodes", auth.Authenticated: "global-default"} {
				testwait.Stable(c.t, "the stored FlowSchemas are used", func() (any, bool) {
					m := c.fairness.Classify(&auth.Attributes{User: auth.User{Groups: []string{group}}, Verb: "list", Resource: "pods"})
					return m, m.Schema == schema && m.SchemaUID[0] != "" && m.LevelUID[0] != ""
				})
			}
		}
	}
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		// A connection that the client keeps makes a drain wait for a second.
		c.http1.CloseIdleConnections()
		c.http2.CloseIdleConnections()
		if err := <-served; err != nil {
			c.t.Errorf("Serve: %v", err)
		}
		if err := <-fed; err != nil && !errors.Is(err, context.Canceled) {
			c.t.Errorf("Feed: %v", err)
		}
		following.Wait()
		must(c.t, c.store.Close())
	}
	c.t.Cleanup(c.stop)
}

func clients(ca *x509.Certificate) (h2, h1 *http.Client) {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	both := func(protocols ...string) *http.Client {
		return &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: protocols}, ForceAttemptHTTP2: len(protocols) > 1,
			DisableCompression: true,
		}}
	}
	return both("h2", "http/1.1"), both("http/1.1")
}

// overBoth runs a test over either version of HTTP.
func (c *cluster) overBoth(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for name, client := range map[string]*http.Client{"HTTP/1.1": c.http1, "HTTP/2": c.http2} {
		c.client = client
		t.Run(name, test)
	}
	c.client = c.http2
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is a complete answer.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// do sends a request with the test's token. Headers are "Name: value".
func (c *cluster) do(method, path, body string, headers ...string) reply {
	c.t.Helper()
	resp := c.open(context.Background(), c.client, method, path, body, headers...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(c.t, err)
	return reply{resp.StatusCode, resp.Header, data}
}

func (c *cluster) get(path string, headers ...string) reply {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", headers...)
}

func (c *cluster) open(ctx context.Context, client *http.Client, method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	must(c.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	resp, err := client.Do(req)
	must(c.t, err)
	return resp
}

// status decodes an answer that is a Status.
func (r reply) status(t testing.TB) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(r.body, &s); err != nil || s.Kind != "Status" {
		t.Fatalf("answer %d is no Status: %s", r.code, r.body)
	}
	return s
}

// podList decodes an answer that is a list of pods.
func (r reply) podList(t testing.TB) corev1.PodList {
	t.Helper()
	var list corev1.PodList
	if err := json.Unmarshal(r.body, &list); err != nil || list.Kind != "PodList" {
		t.Fatalf("answer %d is no PodList (%v): %s", r.code, err, r.body)
	}
	return list
}

func names(list corev1.PodList) string {
	var all []string
	for _, p := range list.Items {
		all = append(all, p.Namespace+"/"+p.Name)
	}
	return strings.Join(all, " ")
}

func testPod(namespace, name string, labels map[string]string, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// put writes a pod straight into the store, and returns the revision.
func (c *cluster) put(pod *corev1.Pod) storage.Revision {
	c.t.Helper()
	ctx := context.Background()
	value, err := c.pods.Encode(ctx, pod)
	must(c.t, err)
	key := c.pods.StorePrefix + c.pods.Key(pod.Namespace, pod.Name)
	rev, err := c.store.Create(ctx, key, value, 0)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		rev, err = c.store.Update(ctx, key, value, conflict.Current.Modified, 0)
	}
	must(c.t, err)
	return rev
}

// cached returns when the cache of pods has a revision: from then on, reads at version 0 have it.
func (c *cluster) cached(rev storage.Revision) {
	c.t.Helper()
	testwait.Stable(c.t, "the cache has the pods", func() (any, bool) { seen := c.caches[c.pods].Reached(); return seen, seen >= rev })
}

func (c *cluster) remove(namespace, name string) storage.Revision {
	c.t.Helper()
	key := c.pods.StorePrefix + c.pods.Key(namespace, name)
	kv, err := c.store.Get(context.Background(), key, 0)
	must(c.t, err)
	rev, err := c.store.Delete(context.Background(), key, kv.Modified)
	must(c.t, err)
	return rev
}

// expand replaces {name} by a revision in a path.
func expand(path string, revisions map[string]storage.Revision) string {
	for name, rev := range revisions {
		path = strings.ReplaceAll(path, "{"+name+"}", fmt.Sprint(rev))
	}
	return path
}

// frames reads a JSON watch stream, event by event.
type frames struct {
	t       testing.TB
	body    io.ReadCloser
	decoder *json.Decoder
	cancel  context.CancelFunc
}

type frame struct {
	Type   string
	Object json.RawMessage
}

func (c *cluster) watch(path string, headers ...string) *frames {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	resp := c.open(ctx, c.client, http.MethodGet, path, "", headers...)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		cancel()
		c.t.Fatalf("watch %s: %d %s", path, resp.StatusCode, body)
	}
	f := &frames{c.t, resp.Body, json.NewDecoder(resp.Body), cancel}
	c.t.Cleanup(f.close)
	return f
}

func (f *frames) close() {
	f.cancel()
	f.body.Close()
}

func (f *frames) next() frame {
	f.t.Helper()
	var e frame
	if err := f.decoder.Decode(&e); err != nil {
		f.t.Fatalf("the stream ended: %v", err)
	}
	return e
}

// want reads the next events and compares them, each as "TYPE name@revision".
func (f *frames) want(events ...string) {
	f.t.Helper()
	for _, want := range events {
		if got := f.next().String(); got != want {
			f.t.Fatalf("got event %q, want %q", got, want)
		}
	}
}

// wantEnd fails unless the stream ends here, cleanly.
func (f *frames) wantEnd() {
	f.t.Helper()
	var e frame
	if err := f.decoder.Decode(&e); !errors.Is(err, io.EOF) {
		f.t.Fatalf("got %v and event %q, want the end of the stream", err, e)
	}
}

func (e frame) String() string {
	var o struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Reason   string
		Code     int
		Rows     []struct{ Object metav1.PartialObjectMetadata }
	}
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return fmt.Sprintf("%s undecodable %v", e.Type, err)
	}
	if len(o.Rows) == 1 {
		o.Metadata = o.Rows[0].Object.ObjectMeta
	}
	switch {
	case e.Type == "ERROR":
		return fmt.Sprintf("ERROR %d %s", o.Code, o.Reason)
	case o.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		return fmt.Sprintf("%s end@%s", e.Type, o.Metadata.ResourceVersion)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s@%s", e.Type, o.Metadata.Name, o.Metadata.ResourceVersion))
}

// untilIdle waits until a gauge of open watches is at zero.
func untilIdle(t testing.TB, gauge prometheus.Gauge) {
	t.Helper()
	testwait.Stable(t, "the watches are closed whose clients have gone", func() (any, bool) { seen := gaugeValue(t, gauge); return seen, seen == 0 })
}

func compact(t testing.TB, data []byte) string {
	t.Helper()
	var buf bytes.Buffer
	must(t, json.Compact(&buf, data))
	return buf.String()
}
