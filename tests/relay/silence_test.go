package relay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// silent makes an upstream say nothing of how far a stream is, as kube-apiserver does of Events, of which it has no watch
// cache.
type silent struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Levelwire-Progress")
	response, err := s.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") != "" && strings.Contains(response.Header.Get("Content-Type"), "json") {
		response.Body = &withoutBookmarks{response.Body, bufio.NewReader(response.Body), nil}
	}
	return response, err
}

// withoutBookmarks is the body of a watch without its bookmarks, but for that after the initial events.
type withoutBookmarks struct {
	io.Closer
	from *bufio.Reader
	line []byte // what is left of it
}

// Read implements io.Reader.
func (b *withoutBookmarks) Read(p []byte) (int, error) {
	for len(b.line) == 0 {
		line, err := b.from.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if !bytes.Contains(line, []byte(`"BOOKMARK"`)) || bytes.Contains(line, []byte("initial-events-end")) {
			b.line = line
		}
	}
	n := copy(p, b.line)
	b.line = b.line[n:]
	return n, nil
}

// TestSilentUpstream: of a resource in which nothing changes, and of which the upstream does not say that, everything can be read
// and watched through a relay, and through three in a row, from the first request on.
func TestSilentUpstream(t *testing.T) {
	begins := true
	state := metav1.ListOptions{AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: &begins}
	for name, first := range map[string]metav1.ListOptions{"from a version": {ResourceVersion: "current"}, "from the state": state, "from now": {}} {
		for _, relays := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " through ", relays), func(t *testing.T) {
				t.Parallel()
				readSilent(t, relays, first)
			})
		}
	}
}

// readSilent watches and lists a resource of a silent upstream through several relays.
func readSilent(t *testing.T, relays int, opts metav1.ListOptions) {
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	config := upstream.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return silent{next} })
	var relay *levelwiretest.Server
	for range relays {
		relay = startRelay(t, config)
		config = relay.Config()
	}
	through := client.For[*corev1.ConfigMap](relay.Client(client.Options{Retry: client.RetryOptions{Max: -1}})).Namespace(metav1.NamespaceDefault)
	if _, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Fatal(err)
	}
	newNamespace(t, upstream, "other") // so that the version of the upstream is not one of this resource
	list, err := direct.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if opts.ResourceVersion != "" {
		opts.ResourceVersion = list.ResourceVersion
	}
	w, err := through.Watch(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	made := create(t, direct, "made")
	for seen := ""; seen != made.ResourceVersion; {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		seen = event.Object.ResourceVersion
	}
	newNamespace(t, upstream, "another")
	list, err = direct.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []metav1.ListOptions{{}, {ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}} {
		if again, err := through.List(t.Context(), opts); err != nil || len(again.Items) != len(list.Items) {
			t.Errorf("%+v: %v, %v", opts, again, err)
		}
	}
	if broken := metric(t, relay, "levelwire_relay_caches_broken_total"); broken != 0 {
		t.Errorf("%v caches broke", broken)
	}
	if code := status(t, relay.Client(client.Options{}), http.MethodGet, "/readyz"); code != http.StatusOK {
		t.Errorf("the relay is not ready: %d", code)
	}
}

// questioned calls after when the upstream has said which version is current.
type questioned struct {
	next  http.RoundTripper
	after func()
}

// RoundTrip implements http.RoundTripper.
func (q questioned) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := q.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("limit") == "1" {
		q.after()
	}
	return response, err
}

// TestSilentUpstreamGoesOn: a watch of the most recent state begins at the version that the upstream has named when it was asked first,
// although it goes on meanwhile to one that the cache cannot be known to reach.
func TestSilentUpstreamGoesOn(t *testing.T) {
	t.Parallel()
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	secrets := client.For[*corev1.Secret](upstream.Client(client.Options{})).Namespace(metav1.NamespaceDefault)
	var armed atomic.Bool
	config := upstream.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return questioned{silent{next}, func() {
			if armed.CompareAndSwap(true, false) {
				if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "meanwhile"}}, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		}}
	})
	through := client.For[*corev1.ConfigMap](startRelay(t, config).Client(client.Options{Retry: client.RetryOptions{Max: -1}})).Namespace(metav1.NamespaceDefault)
	create(t, direct, "first")
	if _, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	w, err := through.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if armed.Load() {
		t.Error("the upstream was not asked")
	}
	create(t, direct, "made")
	for seen := ""; seen != "made"; {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		seen = event.Object.Name
	}
}
