package garbage

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
)

// Events are not followed: they are many. Other kinds may have that name.
func TestCollectableKinds(t *testing.T) {
	for gvr, want := range map[schema.GroupVersionResource]bool{
		{Version: "v1", Resource: "pods"}:                             true,
		{Version: "v1", Resource: "events"}:                           false,
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}:   false,
		{Group: "example.com", Version: "v1", Resource: "events"}:     true,
		{Group: "example.com", Version: "v1", Resource: "concerts"}:   true,
		{Group: "events.k8s.io", Version: "v1", Resource: "concerts"}: true,
	} {
		r := discovery.Resource{Verbs: []string{"list", "watch", "delete"},
			Mapping: scheme.Mapping{Kind: gvr.GroupVersion().WithKind("Event"), Resource: gvr.Resource, Scope: scheme.Namespaced}}
		if collectable(r) != want {
			t.Errorf("%v: %v", gvr, !want)
		}
		r.Verbs = []string{"list", "delete"}
		if collectable(r) {
			t.Errorf("%v cannot be watched", gvr)
		}
	}
}

// An owner that must not go before its dependents waits for kinds that were never
// discovered, as long as for a resource that cannot be watched.
func TestOwnersWaitForUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		down := errors.New("example.com/v1: the server behind it cannot be asked")
		c.undiscovered = down
		o := thing("owner")
		o.marked = time.Now()
		if err := c.awaitGraph(t.Context(), o); !errors.Is(err, errGraphBehind) || !errors.Is(err, down) {
			t.Errorf("kinds are unknown, and the wait ended with %v", err)
		}
		time.Sleep(brokenPatience + time.Second)
		if err := c.awaitGraph(t.Context(), o); err != nil {
			t.Errorf("the group has not come back, and the owner still waits: %v", err)
		}
		c.undiscovered = nil
		o.marked = time.Now()
		if err := c.awaitGraph(t.Context(), o); err != nil {
			t.Errorf("all kinds are known: %v", err)
		}
	})
}
