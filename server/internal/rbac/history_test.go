package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// history returns a History of a fixture that has a ClusterRole to list pods.
func (f *fixture) history() *History {
	f.Helper()
	f.create("clusterroles", clusterRole("lister", rule("list", "", "pods")))
	f.start()
	return f.index().NewHistory()
}

// bind lets users list the pods of a namespace, and returns the revision of that.
func (f *fixture) bind(namespace string, users ...string) storage.Revision {
	f.Helper()
	b := &rbacv1.RoleBinding{ObjectMeta: named(namespace, "listers"), RoleRef: roleRef("ClusterRole", "lister")}
	for _, name := range users {
		b.Subjects = append(b.Subjects, user(name))
	}
	created, err := f.of("rolebindings").Create(context.Background(), namespace, b, registry.WriteOptions{})
	must(f, err)
	return created.Revision
}

func openView(ctx context.Context, h *History, name string, from storage.Revision) (*View, error) {
	return h.View(ctx, auth.User{Name: name}, "", "pods", []string{"list"}, from)
}

// followedHistory returns a History that follows the caches of a fixture, for a view of a user
// that stays open until the test ends.
func followedHistory(t *testing.T, name string) (*fixture, context.Context, *History, *View) {
	t.Helper()
	f, ctx := newFixture(t), within(t)
	h := f.history()
	v, err := openView(ctx, h, name, 0)
	must(t, err)
	t.Cleanup(v.Close)
	return f, ctx, h, v
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestHistoryBytes makes many changes of bindings with many subjects: the oldest are dropped,
// although they are few.
func TestHistoryBytes(t *testing.T) {
	f, ctx, h, _ := followedHistory(t, "someone")
	h.maxBytes = 100 << 10
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("user-%03d", i)
	}
	first := f.bind("n0", many...)
	last := first
	for i := 1; i < 20; i++ {
		last = f.bind(fmt.Sprintf("n%d", i), many...)
	}
	must(t, h.Wait(ctx, last))

	h.mu.Lock()
	kept, counted, sum := len(h.changes), h.bytes, 0
	for i := range h.changes {
		sum += h.changes[i].bytes()
	}
	h.mu.Unlock()
	if kept == 0 || kept == 20 || counted != sum || sum > h.maxBytes {
		t.Errorf("%d changes are kept, of %d bytes, counted as %d", kept, sum, counted)
	}
	v, err := openView(ctx, h, "user-007", first)
	must(t, err)
	defer v.Close()
	var expired *watchcache.ExpiredError
	if _, err := v.At(first); !errors.As(err, &expired) {
		t.Errorf("at a revision whose changes were dropped: %v", err)
	}
	if set, err := v.At(last - 1); err != nil || len(set.Names()) != 19 {
		t.Errorf("before the last change: %v, %v", set, err)
	}
	if n := len(v.Now().Names()); n != 20 {
		t.Errorf("%d namespaces are visible now", n)
	}
}

// gate is a context that stops those who ask it for its error.
type gate struct {
	context.Context
	asked, open chan struct{}
	once        atomic.Bool
}

func (g *gate) Err() error {
	if g.once.CompareAndSwap(false, true) {
		close(g.asked)
		<-g.open
	}
	return g.Context.Err()
}

// TestViewReplayDelaysNobody opens a view of the past, and meanwhile other views and changes.
func TestViewReplayDelaysNobody(t *testing.T) {
	f, ctx, h, _ := followedHistory(t, "someone")
	first := f.bind("n0", "late")
	last := f.bind("n1", "late", "other")
	must(t, h.Wait(ctx, last))

	g := &gate{Context: ctx, asked: make(chan struct{}), open: make(chan struct{})}
	var v *View
	done := make(chan error, 1)
	go func() {
		var err error
		v, err = openView(g, h, "late", first)
		done <- err
	}()
	select {
	case <-g.asked:
	case <-ctx.Done():
		t.Fatal("the changes were not replayed")
	}
	locked := h.mu.TryLock()
	if locked {
		h.mu.Unlock()
		for i := 2; i < 2+3*maxLockedChanges; i++ {
			last = f.bind(fmt.Sprintf("n%d", i), "late", "other")
		}
		must(t, h.Wait(ctx, last))
		other, err := openView(ctx, h, "other", first)
		must(t, err)
		defer other.Close()
	}
	close(g.open)
	must(t, <-done)
	defer v.Close()
	if !locked {
		t.Fatal("the history is locked while a view replays changes")
	}
	for revision, want := range map[storage.Revision]int{first: 1, last - 1: 1 + 3*maxLockedChanges, last: 2 + 3*maxLockedChanges} {
		if set, err := v.At(revision); err != nil || len(set.Names()) != want {
			t.Errorf("at revision %d: %v, %v; want %d namespaces", revision, set, err, want)
		}
	}
	last = f.bind("later", "late")
	must(t, h.Wait(ctx, last))
	if set, err := v.At(last); err != nil || !set.Has("later") {
		t.Errorf("a later change: %v, %v", set, err)
	}
}

// TestViewReplayEndsWithRequest opens a view of the past for a client that is gone.
func TestViewReplayEndsWithRequest(t *testing.T) {
	f, ctx, h, _ := followedHistory(t, "someone")
	first := f.bind("n0", "late")
	must(t, h.Wait(ctx, f.bind("n1", "late")))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := openView(gone, h, "late", first); !errors.Is(err, context.Canceled) {
		t.Errorf("View: %v", err)
	}
}

// TestWaitFailsWithHistory waits for a revision that the caches have, and whose changes
// cannot be read.
func TestWaitFailsWithHistory(t *testing.T) {
	f, ctx, h, _ := followedHistory(t, "someone")
	revision := f.bind("n0", "someone")
	for _, s := range h.sources {
		_, err := s.cache.NotOlderThan(ctx, revision)
		must(t, err)
		s.cache.Close()
	}
	if err := h.Wait(ctx, revision); !errors.Is(err, watchcache.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
}

// TestHistoryFailsAfterReread reads the policy from its beginning again, and then cannot read
// the changes since: no view may take the old policy for the present one.
func TestHistoryFailsAfterReread(t *testing.T) {
	f, ctx, h, v := followedHistory(t, "someone")
	revision := f.bind("n0", "someone")
	must(t, h.Wait(ctx, revision))

	h.mu.Lock()
	must(t, h.restart(ctx))
	h.sources[0].watcher.Close()
	_, err := h.advance(ctx)
	since := h.since
	h.mu.Unlock()
	if !errors.Is(err, watchcache.ErrClosed) {
		t.Fatalf("advance: %v", err)
	}
	if reached := h.Reached(); reached != since || since >= revision {
		t.Errorf("revision %d is reached; the policy is of %d", reached, since)
	}
	var expired *watchcache.ExpiredError
	if _, err := v.At(revision); !errors.As(err, &expired) {
		t.Errorf("an earlier view: %v", err)
	}
	if _, err := openView(ctx, h, "someone", 0); !errors.Is(err, watchcache.ErrNotReady) {
		t.Errorf("View: %v", err)
	}
}

// TestReachedGoesBackWithTheStore has a store that goes back while a reader raises the revision
// that is reached, without a lock: the history must not claim revisions of the earlier store.
func TestReachedGoesBackWithTheStore(t *testing.T) {
	f, ctx, h, v := followedHistory(t, "someone")
	back := f.bind("n0", "someone")
	revision := f.bind("n1", "someone")
	must(t, h.Wait(ctx, revision))

	before := h.reached.Load()
	bound, unchanged := h.unchangedThrough()
	if !unchanged || bound < revision {
		t.Fatalf("revision %d, unchanged: %t", bound, unchanged)
	}
	for _, s := range h.sources {
		snapshot, err := s.cache.Exact(ctx, back)
		must(t, err)
		progress := new(watchcache.Progress)
		progress.Publish(back)
		s.cache.Follow(progress)
		_, err = s.cache.Refill(slices.Collect(snapshot.Range("", "")), back, true)
		must(t, err)
	}
	if reached := h.Reached(); reached != back {
		t.Fatalf("revision %d is reached in a store that has gone back to %d", reached, back)
	}
	h.raise(before, bound)
	if reached := h.Reached(); reached != back {
		t.Errorf("revision %d is reached; the policy is of %d", reached, back)
	}
	var expired *watchcache.ExpiredError
	if _, err := v.At(back); !errors.As(err, &expired) {
		t.Errorf("an earlier view: %v", err)
	}
}

// TestViewsOfManyGroups: whether a changed binding is the user's is looked up for each subject, and not searched in
// the user's groups, which are read once.
func TestViewsOfManyGroups(t *testing.T) {
	f, ctx := newFixture(t), within(t)
	groups := numbered("g", 1000)
	v, err := f.history().View(ctx, auth.User{Name: "someone", Groups: groups}, "", "pods", []string{"list"}, 0)
	must(t, err)
	defer v.Close()
	clear(groups)
	concerns := func(group string) bool {
		return len(v.own(&definition{subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: group}}}, objectKey{})) > 0
	}
	if !concerns("g999") || concerns("g1000") {
		t.Errorf("a binding of a group of the user is one: %v, that of another group: %v", concerns("g999"), concerns("g1000"))
	}
}
