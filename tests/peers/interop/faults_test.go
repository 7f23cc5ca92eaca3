package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server"
)

// TestCutConnections resets an informer's connections again and again between
// writes. It resumes: it lists once, and the handler gets each state once and in
// order.
func TestCutConnections(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		for informer, create := range subjects {
			for _, http1 := range []bool{false, true} {
				t.Run(maker+", "+informer+", "+word(http1, "HTTP/1.1", "HTTP/2"), func(t *testing.T) {
					t.Parallel()
					cutAndResume(t, config, create, http1)
				})
			}
		}
	}
}

func cutAndResume(
	t *testing.T, config *rest.Config, create func(*testing.T, *rest.Config, settings) subject, http1 bool,
) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := clientset(t, config)
	base := settings{namespace: newNamespace(t, client), streaming: true, http1: http1, tap: newTap()}
	proxy, err := faultnet.New(strings.TrimPrefix(config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	throughProxy := rest.CopyConfig(config)
	throughProxy.Host = "https://" + proxy.Addr()

	r := newRecorder()
	s := create(t, throughProxy, base)
	s.handle(t, r, 0)
	s.start(t)
	if !s.waitSync(ctx) {
		t.Fatal("no sync")
	}
	w := newWriter(ctx, t, client, base.namespace)
	w.create("a", "0", "x")
	want := []string{"add 0 x Pending"}
	for step := range 3 {
		r.expect(ctx, t, "a", want...)
		if proxy.Cut() == 0 {
			t.Fatal("no connection went through the proxy")
		}
		w.update("a", fmt.Sprint(step+1), "")
		want = append(want, fmt.Sprintf("update %d x Pending > %d x Pending", step, step+1))
	}
	r.expect(ctx, t, "a", want...)
	r.check(t)
	if stats := base.tap.stats(); stats.lists != 1 || stats.watches < 4 {
		t.Errorf("%+v, want 1 list and at least 4 watches", stats)
	}
	w.sameAsServer(s, metav1.ListOptions{})
}

// TestRestart stops a server under both informers and starts it again on the
// same data and address. They may list again where the server's history is
// gone; they always come to hold what the server holds, and their handlers' events
// go on where they left off.
func TestRestart(t *testing.T) {
	for maker := range makes {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			restart(t, makes[maker](t, server.Embedded))
		})
	}
}

func restart(t *testing.T, h host) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	config := h.start(t)
	client := clientset(t, config)
	base := settings{namespace: newNamespace(t, client), streaming: true}
	w := newWriter(ctx, t, client, base.namespace)
	w.create("stays", "1", "x")
	w.create("changes", "1", "x")
	w.create("goes", "1", "x")

	running, recorders := map[string]subject{}, map[string]*recorder{}
	for informer, create := range subjects {
		s := base
		s.tap = newTap()
		running[informer], recorders[informer] = create(t, config, s), newRecorder()
		running[informer].handle(t, recorders[informer], 0)
		running[informer].start(t)
		if !running[informer].waitSync(ctx) {
			t.Fatal("no sync")
		}
	}
	for range 2 {
		h.stop(t)
		config = h.start(t)
	}
	// Registered last and so run first: the server's end does not wait for
	// watches that no client closes.
	t.Cleanup(func() { h.stop(t) })

	w = newWriter(ctx, t, clientset(t, config), base.namespace)
	w.update("changes", "2", "")
	w.delete("goes")
	w.create("comes", "1", "x")
	for informer, r := range recorders {
		r.until(ctx, t, "the change", func() bool { return slices.Contains(r.of("changes"), "update 1 x Pending > 2 x Pending") })
		r.until(ctx, t, "what comes", func() bool { return slices.Contains(r.of("comes"), "add 1 x Pending") })
		r.until(ctx, t, "the end of what goes", func() bool {
			notes := r.of("goes")
			last := notes[len(notes)-1]
			return strings.HasPrefix(last, "delete ") || strings.HasPrefix(last, "lost ")
		})
		wantNews(t, informer, r, "changes", "initial 1 x Pending", "update 1 x Pending > 2 x Pending")
		wantNews(t, informer, r, "comes", "add 1 x Pending")
		wantNews(t, informer, r, "stays", "initial 1 x Pending")
		r.check(t)
		w.sameAsServer(running[informer], metav1.ListOptions{})
	}
}

// wantNews wants these notes of an object, and besides no more than the
// repetitions of a state that another list causes.
func wantNews(t *testing.T, informer string, r *recorder, name string, want ...string) {
	t.Helper()
	news := slices.DeleteFunc(r.of(name), func(note string) bool { return strings.HasPrefix(note, "resync ") })
	if !slices.Equal(news, want) {
		t.Errorf("%s: the handler got of %s %v, want %v", informer, name, news, want)
	}
}
