package read

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// watch opens a watch of all pods, which is closed when the test ends.
func (f *fixture) watch(opts metav1.ListOptions) *Watch {
	f.t.Helper()
	w, err := f.reader.Watch(f.allPods(), &opts)
	must(f.t, err)
	must(f.t, w.Open(f.t.Context(), nil))
	f.t.Cleanup(w.Close)
	return &w
}

// ready returns the events and the bookmark that are there now, as
// "TYPE key@revision".
func (w *Watch) ready(t testing.TB) []string {
	t.Helper()
	var got []string
	buf := make([]watchcache.Event, 2)
	for {
		n, err := w.Read(buf)
		must(t, err)
		if n == 0 {
			break
		}
		for _, e := range buf[:n] {
			got = append(got, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Revision))
		}
	}
	if b, due := w.TakeBookmark(); due {
		kind := "BOOKMARK"
		if b.InitialEventsEnd {
			kind += " end"
		}
		got = append(got, fmt.Sprintf("%s@%d", kind, b.Revision))
	}
	return got
}

func TestWatchGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		first, second, third := f.seed()
		synctest.Wait() // the cache has come this far
		one, two, three := fmt.Sprint("ADDED a/one@", first), fmt.Sprint("ADDED a/two@", second), fmt.Sprint("ADDED b/three@", third)
		end := fmt.Sprint("BOOKMARK end@", third)
		const notOlder = metav1.ResourceVersionMatchNotOlderThan
		var open []*Watch
		for _, tt := range []struct {
			opts   metav1.ListOptions
			events []string
		}{
			{metav1.ListOptions{}, []string{one, two, three}},
			{metav1.ListOptions{ResourceVersion: "0"}, []string{one, two, three}},
			{metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true}, []string{one, two, three, end}},
			{metav1.ListOptions{ResourceVersion: fmt.Sprint(first)}, []string{two, three}},
			{metav1.ListOptions{ResourceVersion: fmt.Sprint(third)}, nil},
			{metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: notOlder, AllowWatchBookmarks: true}, []string{one, two, three, end}},
			{metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: notOlder, AllowWatchBookmarks: true, ResourceVersion: fmt.Sprint(second)}, []string{one, two, three, end}},
			{metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: notOlder}, []string{one, two, three}},
			{metav1.ListOptions{SendInitialEvents: new(false), ResourceVersionMatch: notOlder}, nil},
			{metav1.ListOptions{SendInitialEvents: new(false), ResourceVersionMatch: notOlder, ResourceVersion: "0"}, nil},
			{metav1.ListOptions{SendInitialEvents: new(false), ResourceVersionMatch: notOlder, ResourceVersion: fmt.Sprint(second)}, []string{three}},
			{metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.nodeName=n2", AllowWatchBookmarks: true}, []string{two, end}},
		} {
			w := f.watch(tt.opts)
			if got := w.ready(t); !slices.Equal(got, tt.events) {
				t.Errorf("%+v: %q, want %q", tt.opts, got, tt.events)
			}
			if !w.Begun() {
				t.Errorf("%+v: something is missing at the beginning", tt.opts)
			}
			open = append(open, w)
		}
		// What comes next must be the next change: nothing more was there.
		next := f.put(testPod("c", "next", nil, "n2"))
		synctest.Wait()
		for i, w := range open {
			if got := w.ready(t); !slices.Equal(got, []string{fmt.Sprint("ADDED c/next@", next)}) {
				t.Errorf("watch %d: then %q", i, got)
			}
		}
	})
}

func TestWatchRefusals(t *testing.T) {
	f := newFixture(t)
	one := Scope{Resource: f.pods, Namespace: "a", Name: "one"}
	const exact, notOlder = metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
	for _, tt := range []struct {
		scope  Scope
		opts   metav1.ListOptions
		code   int32
		reason metav1.StatusReason
	}{
		{f.allPods(), metav1.ListOptions{SendInitialEvents: new(true)}, 422, metav1.StatusReasonInvalid},
		{f.allPods(), metav1.ListOptions{ResourceVersionMatch: notOlder, ResourceVersion: "1"}, 422, metav1.StatusReasonInvalid},
		{f.allPods(), metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: exact, ResourceVersion: "1"}, 422, metav1.StatusReasonInvalid},
		{f.allPods(), metav1.ListOptions{ResourceVersion: "soon"}, 400, metav1.StatusReasonBadRequest},
		{f.allPods(), metav1.ListOptions{FieldSelector: "x=y"}, 400, metav1.StatusReasonBadRequest},
		{one, metav1.ListOptions{FieldSelector: "metadata.name=two"}, 400, metav1.StatusReasonBadRequest},
	} {
		if _, err := f.reader.Watch(tt.scope, &tt.opts); err == nil || status.Of(err).Code != tt.code || status.Of(err).Reason != tt.reason {
			t.Errorf("%+v: %v, want %d %s", tt.opts, err, tt.code, tt.reason)
		}
	}
}

// A watch has bookmarks about once a minute, one before its deadline, and one when
// the server ends it.
func TestWatchBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		_, _, third := f.seed()
		synctest.Wait()
		w := f.watch(metav1.ListOptions{ResourceVersion: fmt.Sprint(third), AllowWatchBookmarks: true, TimeoutSeconds: new(int64(90))})
		begun := time.Now()
		want := []string{fmt.Sprint("BOOKMARK@", third)}
		if got := w.ready(t); got != nil {
			t.Errorf("at first: %q", got)
		}
		for _, latest := range []time.Duration{75 * time.Second, 88 * time.Second} {
			time.Sleep(w.UntilDue())
			if got := w.ready(t); !slices.Equal(got, want) || time.Since(begun) > latest {
				t.Errorf("after %s: %q", time.Since(begun), got)
			}
		}
		if time.Until(w.Deadline()) != 2*time.Second || w.UntilDue() != 2*time.Second {
			t.Errorf("the last bookmark comes %s before the end", time.Until(w.Deadline()))
		}
		w.BookmarkNow()
		if got := w.ready(t); !slices.Equal(got, want) {
			t.Errorf("at a drain: %q", got)
		}
	})
}

// farther is a store that has come farther than the cache knows.
type farther struct {
	storage.Reader
	by storage.Revision
}

func (f farther) Current(ctx context.Context) (storage.Revision, error) {
	revision, err := f.Reader.Current(ctx)
	return revision + f.by, err
}

// down is a store that cannot say how far it has come.
type down struct{ storage.Reader }

func (down) Current(context.Context) (storage.Revision, error) { return 0, storage.ErrUnavailable }

// A watch from a revision that does not come ends with the reason: the revision's, if
// the store has not got it, and otherwise this server's, which is no reason to list.
func TestWatchFromARevisionThatDoesNotCome(t *testing.T) {
	for name, tt := range map[string]struct {
		store func(storage.Reader) storage.Reader
		code  int32
		cause bool
	}{
		"not in the store": {func(r storage.Reader) storage.Reader { return r }, 504, true},
		"in the store":     {func(r storage.Reader) storage.Reader { return farther{r, 5000} }, 429, false},
		"it is not known":  {func(r storage.Reader) storage.Reader { return down{r} }, 429, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(s *setup) { s.config.Store = tt.store(s.config.Store) })
				_, _, third := f.seed()
				synctest.Wait()
				w := f.watch(metav1.ListOptions{ResourceVersion: fmt.Sprint(third + 1000), AllowWatchBookmarks: true})
				begun := time.Now()
				var err error
				for err == nil {
					if got := w.ready(t); got != nil || !w.AwaitsRevision() {
						t.Fatalf("after %s: %q", time.Since(begun), got)
					}
					time.Sleep(w.UntilDue())
					err = w.Overdue(t.Context(), time.Now())
				}
				got := status.Of(err)
				if got.Code != tt.code || status.IsResourceVersionTooLarge(got) != tt.cause || got.Details.RetryAfterSeconds != 1 {
					t.Errorf("got %+v", got)
				}
				if waited := time.Since(begun); waited != 5*time.Second {
					t.Errorf("it waited for %s", waited)
				}
			})
		})
	}
}

// Once its revision has come, a watch goes on as any other, and has its bookmarks
// however long it would have waited.
func TestWatchFromARevisionThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		_, _, third := f.seed()
		synctest.Wait()
		w := f.watch(metav1.ListOptions{ResourceVersion: fmt.Sprint(third + 1), AllowWatchBookmarks: true, TimeoutSeconds: new(int64(5))})
		if !w.AwaitsRevision() {
			t.Error("the revision is there")
		}
		f.put(testPod("a", "skipped", nil, ""))
		seen := f.put(testPod("a", "seen", nil, ""))
		synctest.Wait()
		if got := w.ready(t); !slices.Equal(got, []string{fmt.Sprint("ADDED a/seen@", seen)}) {
			t.Errorf("got %q", got)
		}
		time.Sleep(w.UntilDue())
		if got := w.ready(t); !slices.Equal(got, []string{fmt.Sprint("BOOKMARK@", seen)}) || time.Until(w.Deadline()) != 2*time.Second {
			t.Errorf("%s before the end: %q", time.Until(w.Deadline()), got)
		}
		if err := w.Overdue(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Errorf("it is overdue: %v", err)
		}
	})
}

// A bookmark would say that the revision exists. A short watch that asked for one
// ends with an error that says that it does not. Other watches end as usual.
func TestShortWatchFromARevisionThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		_, _, third := f.seed()
		synctest.Wait()
		opts := metav1.ListOptions{ResourceVersion: fmt.Sprint(third + 1000), TimeoutSeconds: new(int64(1))}
		plain := f.watch(opts)
		opts.AllowWatchBookmarks = true
		marked := f.watch(opts)
		time.Sleep(time.Until(plain.Deadline()))
		if err := marked.Overdue(t.Context(), time.Now()); !status.IsResourceVersionTooLarge(status.Of(err)) {
			t.Errorf("with bookmarks: %v", err)
		}
		if err := plain.Overdue(t.Context(), time.Now()); err != nil {
			t.Errorf("without: %v", err)
		}
	})
}
