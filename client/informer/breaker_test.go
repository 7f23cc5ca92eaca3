package informer

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// tripwire is a server that calls trip at the beginning or end of the nth
// operation of the network.
type tripwire struct {
	*script
	operations atomic.Int64
	at         int64
	trip       func()
}

func (w *tripwire) operation() {
	if w.operations.Add(1) == w.at {
		w.trip()
	}
}

func (w *tripwire) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	w.operation()
	defer w.operation()
	return w.script.List(ctx, opts)
}

func (w *tripwire) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	w.operation()
	stream, err := w.script.Watch(ctx, opts)
	w.operation()
	if err != nil {
		return nil, err
	}
	return &tripping{stream, w}, nil
}

type tripping struct {
	reflector.Stream[*corev1.Pod]
	wire *tripwire
}

func (s *tripping) Next() (client.WatchEvent[*corev1.Pod], error) {
	s.wire.operation()
	defer s.wire.operation()
	return s.Stream.Next()
}

// An informer stops at whatever operation its context ends: no handler call
// runs, a waiting WaitForResourceVersion returns, and no goroutine is left,
// which the bubble checks.
func TestStoppingAtEveryStep(t *testing.T) {
	for name, assemble := range map[string]func(*testing.T, *tripwire) *SharedInformer[*corev1.Pod]{
		"with a file": func(t *testing.T, wire *tripwire) *SharedInformer[*corev1.Pod] {
			i := New[*corev1.Pod]("pods", wire, reflector.Options{PagedList: true})
			must(t, i.KeepOnDisk(DiskOptions{Directory: t.TempDir(), Identify: func(context.Context) (string, error) { return "here", nil }}))
			return i
		},
		"of several namespaces": func(t *testing.T, wire *tripwire) *SharedInformer[*corev1.Pod] {
			other := &tripwire{script: newScript(), at: -1}
			return newInformer("pods", []origin[*corev1.Pod]{{namespace: "ns", source: wire}, {namespace: "other", source: other}}, reflector.Options{PagedList: true}, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stepped, more := 0, true
			for at := int64(0); more; at++ {
				synctest.Test(t, func(t *testing.T) { more = stopAt(t, at, assemble) })
				stepped++
			}
			if stepped < 15 {
				t.Errorf("only %d steps", stepped)
			}
		})
	}
}

// stopAt reports whether the nth operation was reached.
func stopAt(t *testing.T, at int64, assemble func(*testing.T, *tripwire) *SharedInformer[*corev1.Pod]) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wire := &tripwire{script: newScript(), at: at, trip: cancel}
	wire.set("a", 1, nil)
	i := assemble(t, wire)
	must(t, i.SetConsistencyCheck(ConsistencyCheckOptions[*corev1.Pod]{Interval: time.Second,
		List: func(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
			wire.operation()
			return nil, io.ErrUnexpectedEOF
		},
		Get: func(context.Context, string, string) (*corev1.Pod, error) { return nil, io.ErrUnexpectedEOF },
	}))
	var inside atomic.Int32
	registration := add(t, i, HandlerFuncs[*corev1.Pod]{
		Add:    func(*corev1.Pod, bool) { inside.Add(1); wire.operation(); inside.Add(-1) },
		Update: func(_, _ *corev1.Pod) { inside.Add(1); wire.operation(); inside.Add(-1) },
	}, HandlerOptions{Resync: time.Second})
	if at == 0 {
		cancel()
	}
	waited := make(chan error, 1)
	go func() { waited <- i.WaitForResourceVersion(context.Background(), "1000") }()
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for n := range 5 {
			wire.set(fmt.Sprint("p", n), n, nil)
			time.Sleep(time.Second)
			if n == 2 {
				wire.forget()
			}
		}
		time.Sleep(3 * time.Second)
		cancel()
	})
	if err := <-done; err != nil {
		t.Errorf("stopped at operation %d: %v", at, err)
	}
	<-i.Done()
	<-registration.Done()
	if err := <-waited; err == nil {
		t.Errorf("stopped at operation %d: WaitForResourceVersion returned no error", at)
	}
	if inside.Load() != 0 {
		t.Errorf("stopped at operation %d: a handler runs", at)
	}
	return wire.operations.Load() >= at
}

// short ends every watch after one event.
type short struct{ *script }

func (s short) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	stream, err := s.script.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &single{Stream: stream}, nil
}

type single struct {
	reflector.Stream[*corev1.Pod]
	sent bool
}

func (s *single) Next() (client.WatchEvent[*corev1.Pod], error) {
	if s.sent {
		return client.WatchEvent[*corev1.Pod]{}, io.EOF
	}
	s.sent = true
	return s.Stream.Next()
}

func TestServerThatEndsWatchesAfterEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", short{s}, reflector.Options{PagedList: true})
		var r record
		add(t, i, &r, HandlerOptions{MaxUnmergedEvents: 100})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		for range 30 {
			s.set("a", 1, nil)
		}
		must(t, i.WaitForResourceVersion(ctx, "31"))
		synctest.Wait()
		if calls := r.take(); len(calls) != 31 || s.listCount() != 1 {
			t.Errorf("%d calls, %d lists", len(calls), s.listCount())
		}
		cancel()
		<-done
	})
}

// A server that was restored from a backup has older objects than it once sent.
// The informer adopts its present state, and calls handlers with it.
func TestServerThatWentBack(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var r record
		add(t, i, &r, HandlerOptions{})
		old := s.set("a", 1, nil)
		r.expect(t, "+a1")
		s.set("b", 2, nil)
		s.set("a", 1, nil)
		r.expect(t, "+b2", "*a1>3")
		s.mu.Lock()
		s.version, s.events = 1, s.events[:1]
		s.pods = map[string]*corev1.Pod{"a": old}
		s.mu.Unlock()
		s.forget()
		time.Sleep(time.Minute)
		got := strings.Join(r.take(), " ")
		if got != "*a3>1 -b2?" && got != "-b2? *a3>1" {
			t.Errorf("got calls %s", got)
		}
		if version := i.LastSyncResourceVersion(); version != "1" {
			t.Errorf("at version %s", version)
		}
		s.set("c", 3, nil)
		r.expect(t, "+c2")
	})
}

// Moments are measured by the monotonic clock, which cannot be set. Bubbles
// have none, so this test runs outside of one.
func TestAgeDoesNotDependOnTheTimeOfDay(t *testing.T) {
	s := newScript()
	s.set("a", 1, nil)
	i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	<-i.Synced()
	monotonic := func(at time.Time) bool { return strings.Contains(at.String(), " m=") }
	if f, contact := i.Freshness(), i.ReflectorStats().LastContact; !monotonic(f.AsOf) || !monotonic(contact) {
		t.Errorf("as of %v, contact at %v", f.AsOf, contact)
	}
	cancel()
	<-done
}
