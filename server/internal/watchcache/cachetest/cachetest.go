// Package cachetest drives watch caches and feeds in tests of several packages.
package cachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// Watching starts a watcher until the test ends.
func Watching(t testing.TB, c *watchcache.Cache, opts watchcache.WatchOptions) *watchcache.Watcher {
	t.Helper()
	w, err := c.Watch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Drain reads all events that there are, a few at a time.
func Drain(t testing.TB, w *watchcache.Watcher) []watchcache.Event {
	t.Helper()
	var all []watchcache.Event
	var buf [3]watchcache.Event
	for {
		n, err := w.Read(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		all = append(all, buf[:n]...)
	}
}

// Strings formats events as "ADDED a/x@5".
func Strings(events []watchcache.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Revision))
	}
	return out
}

// Expect compares events with what Strings formats.
func Expect(t testing.TB, events []watchcache.Event, want ...string) {
	t.Helper()
	if got := Strings(events); !slices.Equal(got, want) {
		t.Fatalf("events are\n%q, want\n%q", got, want)
	}
}

// Run runs a feed in a synctest bubble until the test ends.
func Run(t *testing.T, f *feed.Feed) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	synctest.Wait()
}

// StartCaches runs a cache of pods with a feed for each of the options until the
// test ends.
func StartCaches(t *testing.T, store *memory.Store, options ...watchcache.Options) (caches []*watchcache.Cache, feeds []*feed.Feed) {
	t.Helper()
	for _, opts := range options {
		c := watchcache.New(podtest.PodResource(), opts)
		f := feed.New(store, []*watchcache.Cache{c}, feed.Options{})
		Run(t, f)
		caches, feeds = append(caches, c), append(feeds, f)
	}
	return caches, feeds
}

// CompactAfter compacts as a server does: after the deletions have been written.
func CompactAfter(t *testing.T, store *memory.Store, f *feed.Feed, at storage.Revision) {
	t.Helper()
	worth, err := f.BeforeCompaction(t.Context(), store, at)
	if err != nil {
		t.Fatal(err)
	}
	if worth {
		if err := store.Compact(t.Context(), at); err != nil && !errors.Is(err, storage.ErrCompacted) {
			t.Fatal(err)
		}
	}
}

// Content formats a snapshot as "a/x@5 a/y@6 ".
func Content(s watchcache.Snapshot) string {
	var b strings.Builder
	for o := range s.Range("", "") {
		fmt.Fprintf(&b, "%s@%d ", o.Key, o.Revision)
	}
	return b.String()
}

// Revisions returns the revisions of a snapshot's objects by their keys.
func Revisions(s watchcache.Snapshot) map[string]storage.Revision {
	out := map[string]storage.Revision{}
	for o := range s.Range("", "") {
		out[o.Key] = o.Revision
	}
	return out
}
