package server_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestRelayShutdownDelay: as a server does, a relay fails /readyz and goes on serving until the
// balancers in front of it have had the time to see that.
func TestRelayShutdownDelay(t *testing.T) {
	ctx := deadline(t)
	upstream := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	must(t, err)
	relay := start(t, server.Config{
		DataDir: t.TempDir(), ShutdownDelay: time.Hour, Listener: listener, Relay: &server.Relay{Config: upstream.adminConfig(t)},
	})
	maps := openWatch(ctx, t, configMaps(relay.client(t)))
	relay.cancel()
	report := testwait.Stable(t, "/readyz fails", func() (string, bool) {
		code, report := readiness(ctx, t, relay)
		return report, code != http.StatusOK
	})
	if !strings.Contains(report, "[-]leaving") {
		t.Errorf("/readyz says %s", report)
	}
	made := create(ctx, t, upstream.client(t), "late")
	if event, err := maps.Next(); err != nil || event.Object.GetUID() != made.UID {
		t.Errorf("a watch: %v, %v", event, err)
	}
	maps.Close()
	must(t, listener.Close()) // the test does not wait for the rest of the delay
	select {
	case <-relay.ended:
		relay.ended <- nil // for stop
	case <-ctx.Done():
		t.Error("the relay does not end without its listener")
	}
}

// TestStoppedRelayEndsWatches with a bookmark, from which its clients go on at another one.
func TestStoppedRelayEndsWatches(t *testing.T) {
	ctx := deadline(t)
	upstream := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	relay := start(t, server.Config{DataDir: t.TempDir(), ShutdownTimeout: time.Minute, Relay: &server.Relay{Config: upstream.adminConfig(t)}})
	maps := configMaps(relay.client(t))
	list, err := maps.List(ctx, metav1.ListOptions{})
	must(t, err)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true, LabelSelector: "nothing=here"})
	must(t, err)
	defer w.Close()
	made := create(ctx, t, upstream.client(t), "unseen")
	testwait.Stable(t, "the relay gets the write", func() (error, bool) {
		list, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		return err, err == nil && len(list.Items) > 0
	})
	relay.cancel()
	want, err := strconv.ParseUint(made.ResourceVersion, 10, 64)
	must(t, err)
	// The cache may have come further: other objects than this one are written, too.
	if last, err := strconv.ParseUint(lastBookmark(ctx, w), 10, 64); err != nil || last < want {
		t.Errorf("the watch ended at version %d (%v), want at least %d", last, err, want)
	}
}

// lastBookmark reads a watch to its end, and returns the version of the last bookmark.
func lastBookmark(ctx context.Context, w *client.Watch[*corev1.ConfigMap]) (version string) {
	for ctx.Err() == nil {
		event, err := w.Next()
		if err != nil {
			return version
		}
		if event.Type == apiwatch.Bookmark {
			version = event.Object.ResourceVersion
		}
	}
	return version
}
