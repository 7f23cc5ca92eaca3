package reflector

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

type configEvent = client.WatchEvent[*corev1.ConfigMap]

func eventAt(typ apiwatch.EventType, version string) configEvent {
	return configEvent{Type: typ, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: version}}}
}

// twoWatches is a source whose watches a test feeds: the one that the Reflector follows, and
// the short ones of RequestProgress.
type twoWatches struct {
	lists    []string // versions of the next lists
	recent   string   // version of a list of one object
	followed chan configEvent
	short    []configEvent
	asked    []metav1.ListOptions // of short watches
	compared int                  // lists of one object
	failed   error                // of those
	quiet    time.Duration        // after which short watches end
}

func (s *twoWatches) List(_ context.Context, opts metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	version := s.recent
	if opts.Limit != 1 {
		version, s.lists = s.lists[0], s.lists[1:]
	} else if s.compared++; s.failed != nil {
		return nil, s.failed
	}
	return &client.List[*corev1.ConfigMap]{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []*corev1.ConfigMap{}}, nil
}

func (s *twoWatches) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	events := s.followed
	if *opts.TimeoutSeconds <= 3 {
		s.asked = append(s.asked, opts)
		events = make(chan configEvent, len(s.short))
		for _, ev := range s.short {
			events <- ev
		}
		time.AfterFunc(s.quiet, func() { close(events) })
	}
	return fedStream{ctx, events}, nil
}

type fedStream struct {
	ctx    context.Context
	events <-chan configEvent
}

func (s fedStream) Next() (ev configEvent, err error) {
	select {
	case ev, open := <-s.events:
		if !open {
			return ev, io.EOF
		}
		return ev, nil
	case <-s.ctx.Done():
		return ev, s.ctx.Err()
	}
}

func (fedStream) Close() {}

type noStore struct{}

func (noStore) Add(*corev1.ConfigMap) error               { return nil }
func (noStore) Update(*corev1.ConfigMap) error            { return nil }
func (noStore) Delete(*corev1.ConfigMap) error            { return nil }
func (noStore) Replace([]*corev1.ConfigMap, string) error { return nil }

// TestProgressOnRequest: only a bookmark before anything else proves how far the store is.
func TestProgressOnRequest(t *testing.T) {
	bookmark := func(version string) configEvent { return eventAt(apiwatch.Bookmark, version) }
	modified := func(version string) configEvent { return eventAt(apiwatch.Modified, version) }
	deleted := func(version string) configEvent { return eventAt(apiwatch.Deleted, version) }
	for name, c := range map[string]struct {
		short    []configEvent
		wanted   string
		recent   string // version of the server's most recent state
		err      error
		before   []configEvent // sent to the followed watch before the request
		after    []configEvent // sent to it then
		reached  []string      // by all of it, from the list at 5 on
		stale    int64
		relisted bool
	}{
		"nothing has changed":        {short: []configEvent{bookmark("9")}, wanted: "9", reached: []string{"5", "9"}},
		"a change is on its way":     {short: []configEvent{modified("7"), bookmark("9")}, wanted: "9", err: ErrNoProgress, after: []configEvent{modified("7")}, reached: []string{"5", "7"}},
		"two changes of one version": {short: []configEvent{modified("7"), modified("7"), bookmark("9")}, wanted: "9", err: ErrNoProgress, after: []configEvent{modified("7"), modified("7")}, reached: []string{"5", "7"}},
		// Deletions that share a version carry the one before it, which may be where the store is.
		"a deletion at the store's version": {short: []configEvent{deleted("5"), bookmark("9")}, wanted: "9", err: ErrNoProgress, after: []configEvent{deleted("5")}, reached: []string{"5"}},
		"an object that became visible":     {short: []configEvent{eventAt(apiwatch.Added, "3"), bookmark("9")}, wanted: "9", err: ErrNoProgress, reached: []string{"5"}},
		"the watch is further meanwhile":    {short: []configEvent{bookmark("9")}, wanted: "9", before: []configEvent{bookmark("12")}, reached: []string{"5", "12"}},
		"another server lags":               {short: []configEvent{bookmark("9")}, wanted: "9", after: []configEvent{bookmark("8"), bookmark("11")}, reached: []string{"5", "9", "11"}},
		"the server went back":              {short: []configEvent{bookmark("9")}, wanted: "9", after: []configEvent{bookmark("4")}, reached: []string{"5", "9", "4"}, stale: 1, relisted: true},
		"the server's cache lags":           {short: []configEvent{bookmark("9")}, wanted: "10", recent: "10", err: ErrNoProgress, reached: []string{"5", "9"}},
		"another storage":                   {short: []configEvent{bookmark("9")}, wanted: "1000", recent: "10", err: ErrOtherVersions, reached: []string{"5", "9"}},
		"a bookmark without a version":      {short: []configEvent{bookmark("")}, wanted: "9", recent: "9", err: ErrNoProgress, reached: []string{"5"}},
		"a bookmark of 0":                   {short: []configEvent{bookmark("0")}, wanted: "9", recent: "9", err: ErrNoProgress, reached: []string{"5"}},
		"a bookmark of another kind":        {short: []configEvent{bookmark("abc")}, wanted: "9", recent: "9", err: ErrNoProgress, reached: []string{"5"}},
		"a version of another kind":         {short: []configEvent{bookmark("9")}, wanted: "abc", recent: "9", err: ErrNoProgress, reached: []string{"5", "9"}},
		"there is nothing":                  {wanted: "9", err: ErrNoProgress, reached: []string{"5"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &twoWatches{lists: []string{"5", "4"}, recent: c.recent, followed: make(chan configEvent), short: c.short}
				var reached []string
				r, err := New[*corev1.ConfigMap](source, noStore{}, Options{
					Name: "configs", PagedList: true, OnProgress: func(version string) { reached = append(reached, version) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := r.RequestProgress(t.Context(), "9"); !errors.Is(err, ErrNoProgress) {
					t.Errorf("before the first list: %v", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go func() { _ = r.Run(ctx) }()
				send := func(events []configEvent) {
					for _, ev := range events {
						source.followed <- ev
					}
					synctest.Wait()
				}
				send(c.before)
				if err := r.RequestProgress(t.Context(), c.wanted); !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
				send(c.after)
				if c.relisted {
					time.Sleep(5 * time.Second) // the back-off
					synctest.Wait()
				}
				if !slices.Equal(reached, c.reached) || r.LastSyncResourceVersion() != reached[len(reached)-1] {
					t.Errorf("reached %v and at last %s, want %v", reached, r.LastSyncResourceVersion(), c.reached)
				}
				if stats := r.Stats(); (stats.ListCount() == 2) != c.relisted || stats.Stale != c.stale {
					t.Errorf("%d lists, %d events were dropped", stats.ListCount(), stats.Stale)
				}
				if asked := source.asked[0]; asked.ResourceVersion == "" || !asked.AllowWatchBookmarks || asked.SendInitialEvents != nil {
					t.Errorf("asked for %+v", asked)
				}
			})
		})
	}
}

// TestProgressOfServersWithLateBookmarks: a server that ends a watch of a second without a bookmark
// is asked for watches of three seconds from then on.
func TestProgressOfServersWithLateBookmarks(t *testing.T) {
	source := &twoWatches{}
	r, err := New[*corev1.ConfigMap](source, noStore{}, Options{Name: "configs"})
	if err != nil {
		t.Fatal(err)
	}
	r.relisted("5")
	for range 2 {
		if err := r.RequestProgress(t.Context(), "9"); !errors.Is(err, ErrNoProgress) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	var asked []int64
	for _, opts := range source.asked {
		asked = append(asked, *opts.TimeoutSeconds)
	}
	if want := []int64{1, 3, 3}; !slices.Equal(asked, want) {
		t.Errorf("watches of %v seconds, want %v", asked, want)
	}
}

// readFirst is a source whose short watches have a bookmark if the most recent state has been read before, as those of
// kube-apiserver for a resource in which nothing changes.
type readFirst struct{ twoWatches }

func (s *readFirst) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	if opts.Limit == 1 {
		s.short = []configEvent{eventAt(apiwatch.Bookmark, s.recent)}
	}
	return s.twoWatches.List(ctx, opts)
}

func (s *readFirst) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	if *opts.TimeoutSeconds == 1 { // bookmarks come two seconds before the end
		return (&twoWatches{quiet: s.quiet}).Watch(ctx, opts)
	}
	return s.twoWatches.Watch(ctx, opts)
}

// TestProgressOfServersThatAreReadFirst: no watch of three seconds passes in vain, neither at the first request nor later.
func TestProgressOfServersThatAreReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &readFirst{twoWatches{recent: "9", quiet: shortProgressWatch}}
		r, err := New[*corev1.ConfigMap](source, noStore{}, Options{Name: "configs"})
		if err != nil {
			t.Fatal(err)
		}
		r.relisted("5")
		if err := r.RequestProgress(t.Context(), "9"); err != nil {
			t.Error(err)
		}
		source.recent, source.short = "12", nil
		if err := r.RequestProgress(t.Context(), "12"); err != nil {
			t.Error(err)
		}
		if version := r.LastSyncResourceVersion(); version != "12" || len(source.asked) != 2 {
			t.Errorf("it has reached %s by %d watches of three seconds", version, len(source.asked))
		}
	})
}

// TestProgressOfServersWithoutBookmarks: one that ends a watch when that is over has none. One that
// ends it before has said nothing of that.
func TestProgressOfServersWithoutBookmarks(t *testing.T) {
	for name, test := range map[string]struct {
		quiet time.Duration
		none  bool
	}{
		"ended in time":      {longerProgressWatch, true},
		"ended at once":      {0, false},
		"not ended":          {time.Minute, false},
		"ended a bit early":  {longerProgressWatch - 10*time.Millisecond, true},
		"ended by a restart": {longerProgressWatch / 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &twoWatches{quiet: test.quiet}
				r, err := New[*corev1.ConfigMap](source, noStore{}, Options{Name: "configs"})
				if err != nil {
					t.Fatal(err)
				}
				r.relisted("5")
				r.progress.lateBookmarks.Store(true)
				if err := r.RequestProgress(t.Context(), "9"); !errors.Is(err, ErrNoProgress) || errors.Is(err, ErrNoBookmarks) != test.none {
					t.Errorf("%v, want ErrNoBookmarks: %v", err, test.none)
				}
			})
		})
	}
}

// TestProgressWithChangesOnTheirWay: beside a server in which something changes all the time the
// wanted version is compared with the most recent one all the same, once a second.
func TestProgressWithChangesOnTheirWay(t *testing.T) {
	const step = 250 * time.Millisecond
	for name, test := range map[string]struct {
		recent   string
		failed   error
		err      error
		compared int
	}{
		"versions of another storage":        {recent: "8", err: ErrOtherVersions, compared: 1},
		"versions of this one":               {recent: "1200", err: ErrChangesPending, compared: 3},
		"a most recent state that is denied": {failed: errors.New("no"), err: ErrChangesPending, compared: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &twoWatches{short: []configEvent{eventAt(apiwatch.Modified, "7")}, recent: test.recent, failed: test.failed}
				r, err := New[*corev1.ConfigMap](source, noStore{}, Options{Name: "configs"})
				if err != nil {
					t.Fatal(err)
				}
				r.relisted("5")
				begun := time.Now()
				for err = r.RequestProgress(t.Context(), "1000"); errors.Is(err, ErrChangesPending) && time.Since(begun) < 3*pendingPatience; {
					if time.Since(begun) < pendingPatience && source.compared > 0 {
						t.Errorf("compared after %v", time.Since(begun))
					}
					time.Sleep(step) // of the bubble
					err = r.RequestProgress(t.Context(), "1000")
				}
				if !errors.Is(err, test.err) || source.compared != test.compared {
					t.Errorf("%v after %d comparisons, want %v after %d", err, source.compared, test.err, test.compared)
				}
				// A bookmark ends that, and the next changes may come in time.
				source.short, source.recent, source.failed = []configEvent{eventAt(apiwatch.Bookmark, "1000")}, "1200", nil
				if err := r.RequestProgress(t.Context(), "1000"); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				source.short, source.compared = []configEvent{eventAt(apiwatch.Modified, "1100")}, 0
				if err := r.RequestProgress(t.Context(), "1200"); !errors.Is(err, ErrChangesPending) || source.compared != 0 {
					t.Errorf("%v after %d comparisons, want that changes are on their way", err, source.compared)
				}
			})
		})
	}
}

// TestProgressBeforeAList: what a short watch has shown is of the versions before the list.
func TestProgressBeforeAList(t *testing.T) {
	r, err := New[*corev1.ConfigMap](&twoWatches{}, noStore{}, Options{Name: "configs"})
	if err != nil {
		t.Fatal(err)
	}
	r.relisted("5")
	lists := r.progress.lists
	r.relisted("3")
	r.relisted("5")
	r.learn("5", "9", lists)
	if got := r.LastSyncResourceVersion(); got != "5" {
		t.Errorf("at %s, want 5: there was a list in between", got)
	}
}
