package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd/backup"
)

// lagging is a transport that delays what long watches of config maps receive. Short ones, by
// which a relay asks how far it is, are not delayed.
type lagging struct {
	mu   sync.Mutex
	free chan struct{} // closed when nothing is delayed
}

func newLagging() *lagging {
	l := &lagging{free: make(chan struct{})}
	close(l.free)
	return l
}

// lag begins to delay, until the end is called.
func (l *lagging) lag() (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = make(chan struct{})
	return sync.OnceFunc(func() { close(l.free) })
}

func (l *lagging) wrap(next http.RoundTripper) http.RoundTripper { return laggingTransport{l, next} }

type laggingTransport struct {
	*lagging
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l laggingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(req)
	seconds, _ := strconv.Atoi(req.URL.Query().Get("timeoutSeconds"))
	if err == nil && req.URL.Query().Get("watch") != "" && req.URL.Path == "/api/v1/configmaps" && seconds > 10 {
		response.Body = &laggingBody{ReadCloser: response.Body, lagging: l.lagging, closed: make(chan struct{})}
	}
	return response, err
}

// laggingBody drops what has been delayed when it is closed.
type laggingBody struct {
	io.ReadCloser
	*lagging
	closed chan struct{}
	once   sync.Once
}

func (b *laggingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	free := b.free
	b.mu.Unlock()
	select {
	case <-free:
		return n, err
	case <-b.closed:
		return 0, errors.New("the watch was closed while it was delayed")
	}
}

func (b *laggingBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// TestObjectDeletedBehindASlowStream: an object is made and deleted while the relay's stream lags
// behind and lists ask how far it is. When the stream begins anew, the upstream has only
// coalesced history, which leaves out the object. So the cache must not have got it meanwhile.
func TestObjectDeletedBehindASlowStream(t *testing.T) {
	directory, slow := t.TempDir(), newLagging()
	c := newCluster(t, 1, func(c *server.Config) {
		if c.Relay != nil {
			c.Relay.Config.WrapTransport = slow.wrap
			return
		}
		c.DataDir, c.Storage = directory, server.Embedded
		c.CompactionInterval, c.CompactionRetention, c.CompactionRevisions = 50*time.Millisecond, time.Millisecond, 1
	})
	relay := c.relays[0].server
	direct, _ := mapsAt(t, c.behind.Addr())
	through := configMaps(t, relay)
	before := create(t, direct, "before").ResourceVersion
	if _, err := through.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	catchUp := slow.lag()
	create(t, direct, "made")
	for range 3 {
		if list, err := through.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) < 2 {
			t.Fatalf("%v, %v", list, err)
		}
	}
	if err := direct.Delete(t.Context(), "made", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := ""
	for n := 0; last == "" || !isCoalesced(t, c.upstream, before); n++ {
		last = create(t, direct, fmt.Sprint("other-", n)).ResourceVersion
		c.restart(func() {})
	}
	catchUp()
	testwait.Stable(t, "the stream has caught up", func() (any, bool) {
		list, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		return list.ResourceVersion, parseRevision(list.ResourceVersion) >= parseRevision(last)
	})
	list, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.Name == "made" {
			t.Errorf("the cache still has %s of version %s, which was deleted", m.Name, m.ResourceVersion)
		}
	}
}

// isCoalesced reports whether a watch of config maps from a version begins with coalesced history.
func isCoalesced(t *testing.T, s *levelwiretest.Server, version string) bool {
	t.Helper()
	response, err := s.Client(client.Options{}).Raw(t.Context(), client.RawRequest{Path: "/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion=" + version}) //passes: only the header is read
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("Levelwire-History") == "coalesced"
}

// TestRestoredSnapshot: the upstream is restored from a snapshot, whose objects have the
// versions that they had. Watches end, and show none of these versions, which have passed.
func TestRestoredSnapshot(t *testing.T) {
	directory := t.TempDir()
	c := newCluster(t, 1, func(c *server.Config) {
		if c.Relay == nil {
			c.DataDir, c.Storage = directory, server.Embedded
		}
	})
	direct, _ := mapsAt(t, c.behind.Addr())
	through := configMaps(t, c.relays[0].server)
	saved := create(t, direct, "saved")
	restore := c.snapshot(directory)
	saved.Data = map[string]string{"content": "lost"}
	if _, err := direct.Update(t.Context(), saved, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c.restart(restore)
	for err == nil {
		var event client.WatchEvent[*corev1.ConfigMap]
		if event, err = w.Next(); err == nil && parseRevision(event.Object.ResourceVersion) < parseRevision(list.ResourceVersion) {
			t.Errorf("a watch from %s shows version %s", list.ResourceVersion, event.Object.ResourceVersion)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("the watch ends with %v, want 410", err)
	}
	testwait.Stable(t, "the relay shows the restored state", func() (any, bool) {
		list, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=saved"})
		return []any{list, err}, err == nil && len(list.Items) == 1 && list.Items[0].Data == nil && parseRevision(list.ResourceVersion) > backup.RevisionBump
	})
	if rewinds := metric(t, c.relays[0].server, "levelwire_relay_rewinds_total"); rewinds == 0 {
		t.Error("it is not counted")
	}
}
