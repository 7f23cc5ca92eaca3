package reflector

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// brokenSource has the object a, and b comes by watches. It fails in the ways of faults, one after the other.
type brokenSource struct {
	mu     sync.Mutex
	faults []string
	open   int // streams that are not closed
}

// fault returns the next fault, if it is one of a method.
func (b *brokenSource) fault(method string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) == 0 {
		return ""
	}
	of, how, _ := strings.Cut(b.faults[0], " ")
	if of != method {
		return ""
	}
	b.faults = b.faults[1:]
	return how
}

func (b *brokenSource) List(context.Context, metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	switch b.fault("List") {
	case "panics":
		panic("a bad item")
	case "returns nil":
		return nil, nil
	case "lacks an object":
		return &client.List[*corev1.ConfigMap]{ListMeta: metav1.ListMeta{ResourceVersion: "4"}, Items: []*corev1.ConfigMap{configMap("c", "3"), nil}}, nil
	}
	return &client.List[*corev1.ConfigMap]{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []*corev1.ConfigMap{configMap("a", "3")}}, nil
}

func (b *brokenSource) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	switch b.fault("Watch") {
	case "panics":
		panic("no stream")
	case "returns nil":
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	return &brokenStream{source: b, ctx: ctx, closed: make(chan struct{}), sent: opts.ResourceVersion != "5"}, nil
}

type brokenStream struct {
	source *brokenSource
	ctx    context.Context
	closed chan struct{}
	once   sync.Once
	sent   bool
}

func (s *brokenStream) Next() (ev client.WatchEvent[*corev1.ConfigMap], err error) {
	switch s.source.fault("Next") {
	case "panics":
		panic("a bad event")
	case "lacks an object":
		return client.WatchEvent[*corev1.ConfigMap]{Type: watch.Modified}, nil
	case "lacks a bookmark":
		return client.WatchEvent[*corev1.ConfigMap]{Type: watch.Bookmark}, nil
	}
	if !s.sent {
		s.sent = true
		return client.WatchEvent[*corev1.ConfigMap]{Type: watch.Added, Object: configMap("b", "6")}, nil
	}
	timer := time.NewTimer(s.Timeout())
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return ev, context.Cause(s.ctx)
	case <-s.closed:
		return ev, client.ErrClosed
	case <-timer.C:
		return ev, io.EOF
	}
}

func (s *brokenStream) Close() {
	s.once.Do(func() {
		close(s.closed)
		s.source.mu.Lock()
		defer s.source.mu.Unlock()
		s.source.open--
	})
}

// Timeout is shorter than what is asked for: an end after it is no early one.
func (*brokenStream) Timeout() time.Duration { return time.Minute }

// A source that panics, as one does that decodes objects with methods of the program, or that returns nothing at
// all, has sent what cannot be decoded.
func TestSourcesThatPanic(t *testing.T) {
	for name, test := range map[string]struct {
		opts   Options
		faults string
		silent int // of the faults: only logged
	}{
		"lists":                 {Options{PagedList: true}, "List panics,List returns nil,List panics", 0},
		"watches":               {Options{PagedList: true}, "Watch panics,Watch returns nil", 0},
		"events":                {Options{PagedList: true}, "Next panics,Next panics,Next panics", 0},
		"all":                   {Options{PagedList: true}, "List panics,Watch panics,Next panics,Watch returns nil,Next panics,List panics", 0},
		"polls":                 {Options{PagedList: true, PollTimeout: time.Minute}, "Watch panics,Next panics,Watch returns nil,Next panics", 0},
		"no objects":            {Options{PagedList: true}, "List lacks an object,List lacks an object,Next lacks an object,Next lacks a bookmark", 0},
		"no objects in polls":   {Options{PagedList: true, PollTimeout: time.Minute}, "Next lacks an object,Next lacks a bookmark", 0},
		"streaming lists":       {Options{}, "Watch panics,Next panics,Watch panics,List panics", 1},
		"none, and its Timeout": {Options{PagedList: true}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, store := &brokenSource{}, &mirror{}
				if test.faults != "" {
					source.faults = strings.Split(test.faults, ",")
				}
				faults := len(source.faults)
				reported := 0
				test.opts.OnError = func(_ string, err error) {
					if strings.Contains(err.Error(), "the source panicked: ") || strings.Contains(err.Error(), "returned nil") {
						reported++
					}
				}
				r, err := New(ListerWatcher[*corev1.ConfigMap](source), Store[*corev1.ConfigMap](store), test.opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- r.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := store.snapshot(); got != "map[a:3 b:6]" || len(source.faults) != 0 {
					t.Errorf("the store holds %s, and there are still to come: %v", got, source.faults)
				}
				if s := r.Stats(); reported != faults-test.silent || s.Resumes[ResumeShort] != 0 {
					t.Errorf("%d errors are reported, %+v", reported, s)
				}
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
				if source.open != 0 {
					t.Errorf("%d streams are still open", source.open)
				}
			})
		})
	}
}
