package reflector

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// quietServer has one object, in which nothing changes.
type quietServer struct {
	lasts   func(watch int, asked time.Duration) time.Duration // how long a watch does
	later   func() (*client.List[*corev1.ConfigMap], error)    // the page behind the first one; nil: there is none
	lists   int
	watches int
}

func (q *quietServer) List(_ context.Context, opts metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	q.lists++
	if opts.Continue != "" {
		return q.later()
	}
	list := &client.List[*corev1.ConfigMap]{Items: []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}}}
	list.ResourceVersion = "10"
	if q.later != nil {
		list.Continue = "more"
	}
	return list, nil
}

func (q *quietServer) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	q.watches++
	lasts := time.Duration(*opts.TimeoutSeconds) * time.Second
	if q.lasts != nil {
		lasts = min(lasts, q.lasts(q.watches, lasts))
	}
	return quietStream{ctx, lasts}, nil
}

type quietStream struct {
	ctx   context.Context
	lasts time.Duration
}

func (s quietStream) Next() (client.WatchEvent[*corev1.ConfigMap], error) {
	select {
	case <-s.ctx.Done():
		return client.WatchEvent[*corev1.ConfigMap]{}, s.ctx.Err()
	case <-time.After(s.lasts):
		return client.WatchEvent[*corev1.ConfigMap]{}, io.EOF
	}
}

func (quietStream) Close() {}

// follow runs a Reflector of the server for a time of the bubble, and returns its Stats and version.
func (q *quietServer) follow(t *testing.T, d time.Duration, opts Options) (stats Stats, version string) {
	t.Helper()
	opts.PagedList, opts.Logger = true, slog.New(slog.DiscardHandler)
	r, err := New[*corev1.ConfigMap](q, noStore{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	time.Sleep(d)
	stats = r.Stats()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return stats, r.LastSyncResourceVersion()
}

// TestShortWatchesAreContact: watches that a proxy, or the Reflector's own option, ends within half
// a minute, of a server that sends no bookmarks.
func TestShortWatchesAreContact(t *testing.T) {
	for name, opts := range map[string]Options{"of a proxy": {}, "by option": {WatchTimeout: 10 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quietServer{lasts: func(int, time.Duration) time.Duration { return 25 * time.Second }}
				stats, _ := q.follow(t, time.Hour, opts)
				if age := time.Since(stats.LastContact); age > 5*time.Minute || stats.ListCount() != 1 {
					t.Errorf("the last contact was %v ago, after %d lists and %d watches", age, q.lists, q.watches)
				}
			})
		})
	}
}

// TestSteadyWatchesEndASeries: short watches are no reason for a list if steady ones come between.
func TestSteadyWatchesEndASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quietServer{lasts: func(watch int, _ time.Duration) time.Duration {
			if watch%20 == 0 {
				return 100 * time.Millisecond
			}
			return 2 * time.Minute
		}}
		if stats, _ := q.follow(t, 24*time.Hour, Options{}); stats.ListCount() != 1 {
			t.Errorf("lists: %v", stats.Lists)
		}
	})
}

// TestServersThatPageByThemselves send pages although everything is asked for at once.
func TestServersThatPageByThemselves(t *testing.T) {
	empty := func() (*client.List[*corev1.ConfigMap], error) {
		return &client.List[*corev1.ConfigMap]{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
	}
	expired := func() (*client.List[*corev1.ConfigMap], error) { return nil, apierrors.NewResourceExpired("gone") }
	synctest.Test(t, func(t *testing.T) {
		q := &quietServer{later: empty}
		if _, version := q.follow(t, time.Hour, Options{}); version != "10" || q.watches == 0 {
			t.Errorf("an empty last page: at %q after %d lists and %d watches", version, q.lists, q.watches)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q := &quietServer{later: expired}
		if q.follow(t, time.Hour, Options{Rand: func() float64 { return 0.5 }}); q.lists > 1000 {
			t.Errorf("%d lists in an hour of expired tokens", q.lists)
		}
	})
}
