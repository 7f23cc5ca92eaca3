package reflector

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// endless has always another page, or initial event, with objects that it has not sent before,
// until it has sent all.
type endless struct {
	perPage int
	all     int // objects
	sent    atomic.Int64
	most    atomic.Int64 // sent for one list
}

func (e *endless) next() *corev1.ConfigMap {
	n := e.sent.Add(1)
	e.most.Store(max(e.most.Load(), n))
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%012d", n), ResourceVersion: "1"}}
}

func (e *endless) List(_ context.Context, opts metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	if opts.Continue == "" {
		e.sent.Store(0)
	}
	list := &client.List[*corev1.ConfigMap]{}
	list.ResourceVersion = "10"
	for range e.perPage {
		list.Items = append(list.Items, e.next())
	}
	if e.sent.Load() < int64(e.all) {
		list.Continue = fmt.Sprint(e.sent.Load())
	}
	return list, nil
}

func (e *endless) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	if opts.SendInitialEvents == nil {
		return quietStream{ctx, time.Hour}, nil
	}
	e.sent.Store(0)
	return &endlessEvents{ctx: ctx, endless: e}, nil
}

type endlessEvents struct {
	ctx context.Context
	*endless
	ended bool
}

func (s *endlessEvents) Next() (client.WatchEvent[*corev1.ConfigMap], error) {
	if s.ended {
		<-s.ctx.Done()
	}
	if s.ctx.Err() != nil {
		return client.WatchEvent[*corev1.ConfigMap]{}, s.ctx.Err()
	}
	if s.sent.Load() >= int64(s.all) {
		s.ended = true
		end := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		return client.WatchEvent[*corev1.ConfigMap]{Type: apiwatch.Bookmark, Object: end}, nil
	}
	return client.WatchEvent[*corev1.ConfigMap]{Type: apiwatch.Added, Object: s.next()}, nil
}

func (*endlessEvents) Close() {}

// A list without an end fails at the bound, is repeated, and is seen.
func TestEndlessLists(t *testing.T) {
	const forEver = 1 << 40
	for name, test := range map[string]struct {
		server  *endless
		opts    Options
		most    int64 // objects that are read for one list
		version string
	}{
		"pages":                 {server: &endless{perPage: 500, all: forEver}, opts: Options{PagedList: true, MaxObjects: 10_000}, most: 10_500},
		"pages of one":          {server: &endless{perPage: 1, all: forEver}, opts: Options{PagedList: true, MaxObjects: 10_000}, most: 201},
		"small pages":           {server: &endless{perPage: 1, all: forEver}, opts: Options{PagedList: true, PageSize: 1, MaxObjects: 1000}, most: 1001},
		"initial events":        {server: &endless{perPage: 500, all: forEver}, opts: Options{MaxObjects: 10_000}, most: 10_500},
		"as many as there are":  {server: &endless{perPage: 500, all: 10_000}, opts: Options{PagedList: true, MaxObjects: 10_000}, most: 10_000, version: "10"},
		"initial, as many":      {server: &endless{all: 10_000}, opts: Options{MaxObjects: 10_000}, most: 10_000, version: "10"},
		"many, without a bound": {server: &endless{perPage: 500, all: 30_000}, opts: Options{PagedList: true, MaxObjects: -1}, most: 30_000, version: "10"},
		"many, by default":      {server: &endless{perPage: 500, all: 30_000}, opts: Options{PagedList: true}, most: 30_000, version: "10"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.opts.Logger = slog.New(slog.DiscardHandler)
				r, err := New[*corev1.ConfigMap](test.server, noStore{}, test.opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				time.Sleep(10 * time.Second)
				stats := r.Stats()
				if got := test.server.most.Load(); got != test.most {
					t.Errorf("%d objects were read for one list, want %d", got, test.most)
				}
				if got := r.LastSyncResourceVersion(); got != test.version {
					t.Errorf("the store is at %q, want %q", got, test.version)
				}
				failed := stats.LastError != nil && strings.Contains(stats.LastError.Error(), "MaxObjects") && stats.LastContact.IsZero()
				if failed != (test.version == "") {
					t.Errorf("error %v, contact %v", stats.LastError, stats.LastContact)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
