package read

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// aheadStore has revisions that no cache has yet, as the store of a server that was stopped. It
// does not answer if it is cut off.
type aheadStore struct {
	storage.Reader
	ahead  storage.Revision
	cutOff error
}

func (s *aheadStore) Current(ctx context.Context) (storage.Revision, error) {
	current, err := s.Reader.Current(ctx)
	return current + s.ahead, errors.Join(err, s.cutOff)
}

// laggingVisibility learns at the store's latest revision only that nothing is visible any more.
type laggingVisibility struct {
	fixedVisibility
	withdrawn storage.Revision
	known     storage.Revision
}

func (v *laggingVisibility) Wait(_ context.Context, revision storage.Revision) error {
	v.known = max(v.known, revision)
	return nil
}

func (v *laggingVisibility) Now() *watchcache.Namespaces {
	if v.known >= v.withdrawn {
		return watchcache.NewNamespaces(nil)
	}
	return v.set
}

// sleeps is a Waker that does nothing.
type sleeps struct{}

func (sleeps) Wake() watchcache.Starter { return nil }

// TestAWithdrawnRightIsKnown to each request, whatever state it asks for: also on a server that has
// not heard of it yet.
func TestAWithdrawnRightIsKnown(t *testing.T) {
	store := &aheadStore{ahead: 5}
	f := newFixture(t, func(s *setup) { store.Reader = s.config.Store; s.config.Store = store })
	first, _, last := f.seed()
	if _, err := f.cache.NotOlderThan(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	scope := func() Scope {
		scope := f.allPods()
		scope.Visible = &laggingVisibility{fixedVisibility: fixedVisibility{f.cache, watchcache.NewNamespaces([]string{"a"})}, withdrawn: last + 5}
		return scope
	}
	for _, opts := range []metav1.ListOptions{
		{ResourceVersion: "0"},
		{ResourceVersion: FormatResourceVersion(first), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		{ResourceVersion: FormatResourceVersion(first), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
	} {
		if _, err := f.reader.List(t.Context(), scope(), &opts); !apierrors.IsTooManyRequests(err) && !apierrors.IsResourceExpired(err) {
			t.Errorf("a list with %+v: %v", opts, err)
		}
	}
	for _, opts := range []metav1.ListOptions{{ResourceVersion: "0"}, {ResourceVersion: FormatResourceVersion(first)}} {
		w, err := f.reader.Watch(scope(), &opts)
		must(t, err)
		must(t, w.Open(t.Context(), sleeps{}))
		var events [10]watchcache.Event
		n, err := w.Read(events[:])
		for _, e := range events[:n] {
			if e.Type != watchcache.Deleted {
				t.Errorf("a watch with %+v begins with %s", opts, e.Object.Key)
			}
		}
		must(t, err)
		w.Close()
	}
	store.cutOff = fmt.Errorf("%w: no answer", storage.ErrUnavailable)
	if _, err := f.reader.List(t.Context(), scope(), &metav1.ListOptions{ResourceVersion: "0"}); !errors.Is(err, store.cutOff) {
		t.Errorf("a list of a server that is cut off from its store: %v", err)
	}
	w, err := f.reader.Watch(scope(), &metav1.ListOptions{ResourceVersion: FormatResourceVersion(first)})
	must(t, err)
	if err := w.Open(t.Context(), sleeps{}); !errors.Is(err, store.cutOff) {
		t.Errorf("a watch of a server that is cut off from its store: %v", err)
	}
}

// stuckVisibility never knows more.
type stuckVisibility struct{ fixedVisibility }

func (stuckVisibility) Wait(ctx context.Context, _ storage.Revision) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestAWatchOfUnknownRightsIsToComeBack, also if the policy is known to be behind.
func TestAWatchOfUnknownRightsIsToComeBack(t *testing.T) {
	f := newFixture(t, func(s *setup) { s.config.CatchUpTimeout = time.Millisecond })
	first, _, last := f.seed()
	if _, err := f.cache.NotOlderThan(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	fixed := fixedVisibility{f.cache, watchcache.NewNamespaces([]string{"a"})}
	for _, visible := range []Visibility{stuckVisibility{fixed}, behindVisibility{fixed}} {
		scope := f.allPods()
		scope.Visible = visible
		w, err := f.reader.Watch(scope, &metav1.ListOptions{ResourceVersion: FormatResourceVersion(first)})
		must(t, err)
		if err := w.Open(t.Context(), sleeps{}); !apierrors.IsTooManyRequests(err) {
			t.Errorf("%T: %v", visible, err)
		}
	}
}

// behindVisibility does not know of a revision soon enough.
type behindVisibility struct{ fixedVisibility }

func (behindVisibility) Wait(_ context.Context, revision storage.Revision) error {
	return &watchcache.TooLargeError{Requested: revision}
}
