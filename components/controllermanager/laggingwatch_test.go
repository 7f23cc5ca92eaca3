package controller_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager/internal/garbage"
)

// laggingWatch holds back what a client's watches of a resource send, from hold to release. Short ones, which ask how
// far it is, are answered.
type laggingWatch struct {
	next     http.RoundTripper
	resource string
	held     atomic.Bool
	once     sync.Once
	opened   chan struct{} // closed once a watch is open: what the client lists no more comes with it
	released chan struct{}
	asked    chan struct{} // has an element after the client has asked
}

func newLaggingWatch(resource string) *laggingWatch {
	return &laggingWatch{resource: resource, opened: make(chan struct{}), released: make(chan struct{}), asked: make(chan struct{}, 1)}
}

func (l *laggingWatch) hold() {
	l.held.Store(true)
	select {
	case <-l.asked: // before
	default:
	}
}

func (l *laggingWatch) release() { close(l.released) }

// awaitAsked returns when the client has asked how far the watch is.
func (l *laggingWatch) awaitAsked(t *testing.T) {
	t.Helper()
	select {
	case <-l.asked:
	case <-time.After(testTimeout):
		t.Fatalf("the client never asked how far its watch of %s is", l.resource)
	}
}

func (l *laggingWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/"+l.resource) || !r.URL.Query().Has("watch") {
		return resp, err
	}
	if len(r.URL.Query().Get("timeoutSeconds")) > 1 {
		resp.Body = &laggingBody{ReadCloser: resp.Body, watch: l, closed: make(chan struct{})}
		l.once.Do(func() { close(l.opened) })
		return resp, nil
	}
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return resp, nil
}

type laggingBody struct {
	io.ReadCloser
	watch  *laggingWatch
	once   sync.Once
	closed chan struct{}
}

func (b *laggingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.watch.held.Load() {
		select {
		case <-b.watch.released:
		case <-b.closed:
		}
	}
	return n, err
}

func (b *laggingBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// connectBehind makes a client of which one watch is behind while the returned one is held.
func (c *cluster) connectBehind(user, resource string) (*client.Client, *laggingWatch) {
	c.t.Helper()
	held := newLaggingWatch(resource)
	config := c.server.UserConfig(user, "system:masters")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		held.next = next
		return held
	})
	connected, err := client.New(config, client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(connected.CloseIdleConnections)
	return connected, held
}

// TestCollectorThatDoesNotSeeDependents deletes an owner whose dependent has not come to the
// collector yet. An owner that lets its dependents go must not go before the collector
// has cut their references, or they go with it; one that waits for them must wait.
func TestCollectorThatDoesNotSeeDependents(t *testing.T) {
	for policy, stays := range map[metav1.DeletionPropagation]bool{metav1.DeletePropagationOrphan: true, metav1.DeletePropagationForeground: false} {
		t.Run(string(policy), func(t *testing.T) {
			c := newCluster(t, 0)
			connected, watch := c.connectBehind("collector", "configmaps")
			collector, err := garbage.New(connected, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(c.ctx)
			t.Cleanup(cancel)
			c.start(ctx, "collector", collector.Run)
			<-collector.Synced()
			<-watch.opened

			watch.hold()
			secrets, configs := in[*corev1.Secret](c), in[*corev1.ConfigMap](c)
			owner := create(c, secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "owner"}})
			blocks := true
			create(c, configs, newConfig("dependent", metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &blocks}))
			gone := make(chan struct{})
			c.group.Go(func() {
				defer close(gone)
				awaitEach(c, secrets, metav1.ListOptions{}, "the owner gone", func(all map[string]*corev1.Secret) bool { return all["owner"] == nil })
			})
			remove(c, secrets, "owner", metav1.DeleteOptions{PropagationPolicy: &policy})
			for range 3 { // each time the collector has asked how far its watch is
				select {
				case <-watch.asked:
				case <-gone:
					t.Fatal("the owner has gone, although the collector cannot know its dependents")
				}
			}
			if _, err := secrets.Get(c.ctx, "owner", metav1.GetOptions{}); err != nil {
				t.Errorf("the owner, while the collector's watch is held: %v", err)
			}
			watch.release()
			<-gone
			dependent, err := configs.Get(c.ctx, "dependent", metav1.GetOptions{})
			switch {
			case stays && (err != nil || len(dependent.OwnerReferences) != 0 || dependent.DeletionTimestamp != nil):
				t.Errorf("the dependent: %v, owners %v", err, dependent.OwnerReferences)
			case !stays && !apierrors.IsNotFound(err):
				t.Errorf("the owner has gone before its dependent: %v", err)
			}
		})
	}
}
