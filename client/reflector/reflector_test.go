package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// source is a ListerWatcher whose streams are channels.
type source struct {
	opened chan chan client.WatchEvent[*corev1.ConfigMap] // each stream, when it is opened
	err    error
}

type stream struct {
	ctx    context.Context
	events chan client.WatchEvent[*corev1.ConfigMap]
}

func (s stream) Next() (client.WatchEvent[*corev1.ConfigMap], error) {
	select {
	case ev, ok := <-s.events:
		if !ok {
			return ev, io.EOF
		}
		return ev, nil
	case <-s.ctx.Done():
		return client.WatchEvent[*corev1.ConfigMap]{}, s.ctx.Err()
	}
}

func (s stream) Close() {}

func (s *source) List(context.Context, metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	list := &client.List[*corev1.ConfigMap]{Items: []*corev1.ConfigMap{configMap("a", "1")}}
	list.ResourceVersion = "5"
	return list, s.err
}

func (s *source) Watch(ctx context.Context, _ metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	events := make(chan client.WatchEvent[*corev1.ConfigMap], 10)
	select {
	case s.opened <- events:
		return stream{ctx, events}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func added(name, version string) client.WatchEvent[*corev1.ConfigMap] {
	return client.WatchEvent[*corev1.ConfigMap]{Type: watch.Added, Object: configMap(name, version)}
}

// A store that cannot take an object has lost it: going on would hide that.
func TestErrorsOfTheStoreEndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{opened: make(chan chan client.WatchEvent[*corev1.ConfigMap])}
		store := &mirror{fail: errStore}
		r, err := New(src, Store[*corev1.ConfigMap](store), Options{PagedList: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); !errors.Is(err, errStore) || !strings.Contains(err.Error(), "replace") {
			t.Errorf("got %v", err)
		}
		if r.LastSyncResourceVersion() != "" {
			t.Error("the version has moved to what the store does not hold")
		}

		store = &mirror{}
		r, err = New(src, Store[*corev1.ConfigMap](store), Options{PagedList: true})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error)
		go func() { ran <- r.Run(t.Context()) }()
		events := <-src.opened
		synctest.Wait()
		store.mu.Lock()
		store.fail = errStore
		store.mu.Unlock()
		events <- added("b", "6")
		if err := <-ran; !errors.Is(err, errStore) || r.LastSyncResourceVersion() != "5" {
			t.Errorf("got %v at version %s", err, r.LastSyncResourceVersion())
		}
	})
}

func TestRunOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := New(&source{}, Store[*corev1.ConfigMap](&mirror{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		t.Errorf("a context that is done is no error: %v", err)
	}
	if err := r.Run(ctx); err == nil {
		t.Error("a second Run is a mistake")
	}
}

func TestNewRefuses(t *testing.T) {
	good, store := &source{}, Store[*corev1.ConfigMap](&mirror{})
	if _, err := New[*corev1.ConfigMap](nil, store, Options{}); err == nil {
		t.Error("no source")
	}
	if _, err := New(good, nil, Options{}); err == nil {
		t.Error("no store")
	}
	for _, opts := range []Options{{WatchTimeout: -1}, {Backoff: Backoff{Base: -1}}} {
		if _, err := New(good, store, opts); err == nil {
			t.Errorf("%+v was accepted", opts)
		}
	}
}

// Without a logger, a reflector logs to the program's default one.
func TestNilLoggerIsTheDefaultOne(t *testing.T) {
	r, err := New(&source{}, Store[*corev1.ConfigMap](&mirror{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.opts.Logger != slog.Default() {
		t.Error("the logger is another one than slog.Default()")
	}
}

// OnProgress is called once for each resourceVersion, OnError before the wait
// that follows.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{opened: make(chan chan client.WatchEvent[*corev1.ConfigMap])}
		var progress []string
		var failures []error
		r, err := New(src, Store[*corev1.ConfigMap](&mirror{}), Options{
			Name: "test", PagedList: true,
			OnProgress: func(v string) { progress = append(progress, v) },
			OnError:    func(_ string, err error) { failures = append(failures, err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- r.Run(ctx) }()
		events := <-src.opened
		events <- added("a", "6")
		events <- added("b", "6")
		events <- added("c", "9")
		close(events)
		<-src.opened
		synctest.Wait()
		contact := r.Stats().LastContact
		cancel()
		<-ran
		if !slices.Equal(progress, []string{"5", "6", "9"}) {
			t.Errorf("progress %v", progress)
		}
		if len(failures) != 1 || !errors.Is(failures[0], io.EOF) {
			t.Errorf("errors %v", failures)
		}
		if contact.IsZero() || contact.After(time.Now()) {
			t.Errorf("last contact %v", contact)
		}
	})
}

// A page that does not come is given up.
func TestListTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: time.Second, -1: time.Hour} {
			var failed time.Time
			r, err := New[*corev1.ConfigMap](stuck{}, &mirror{}, Options{PagedList: true, ListTimeout: limit,
				OnError: func(string, error) {
					if failed.IsZero() {
						failed = time.Now()
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			start := time.Now()
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			if failed.IsZero() {
				failed = time.Now()
			}
			if got := failed.Sub(start); got != want {
				t.Errorf("limit %v: given up after %v, want %v", limit, got, want)
			}
		}
	})
}

// stuck never answers.
type stuck struct{}

func (stuck) List(ctx context.Context, _ metav1.ListOptions) (*client.List[*corev1.ConfigMap], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuck) Watch(ctx context.Context, _ metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A store that takes its time does not make the server look silent.
func TestSlowStoreIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{opened: make(chan chan client.WatchEvent[*corev1.ConfigMap])}
		release := make(chan struct{})
		store := &mirror{}
		r, err := New(src, Store[*corev1.ConfigMap](store), Options{ResumeFrom: "1", SilenceTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		store.block = func() { <-release }
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- r.Run(ctx) }()
		events := <-src.opened
		events <- added("a", "6")
		<-time.After(time.Hour)
		close(release)
		synctest.Wait()
		if s := r.Stats(); s.Watches != 1 || s.Events != 1 {
			t.Errorf("%+v", s)
		}
		cancel()
		<-ran
	})
}

func TestBackoffDoublesAndForgets(t *testing.T) {
	now := time.Unix(0, 0)
	b := backoff{Backoff: Options{}.withDefaults().Backoff, rand: func() float64 { return 1 }}
	for i, want := range []int{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		got := b.next(now)
		if got.Milliseconds() != int64(want) {
			t.Errorf("delay %d: %v, want %v ms", i, got, want)
		}
		now = now.Add(got + time.Second)
	}
	now = now.Add(2 * time.Minute)
	if got := b.next(now); got != 800*time.Millisecond {
		t.Errorf("after two good minutes: %v", got)
	}
	b.rand = func() float64 { return 0 }
	if got := b.next(now); got != 0 {
		t.Errorf("full jitter begins at zero, got %v", got)
	}
}

func TestCollectionAgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var c collection[*corev1.ConfigMap]
		model := map[objectKey]string{}
		for i := range 40 {
			obj := configMap(fmt.Sprint(random.IntN(12)), fmt.Sprint(i))
			obj.Namespace = []string{"a", "a-b", "a.b", "b"}[random.IntN(4)]
			if random.IntN(4) == 0 {
				c.remove(obj)
				delete(model, keyOf(obj))
			} else {
				c.put(obj)
				model[keyOf(obj)] = obj.ResourceVersion
			}
		}
		got := map[objectKey]string{}
		for _, obj := range c.list() {
			if _, twice := got[keyOf(obj)]; twice {
				t.Fatalf("%v is there twice", keyOf(obj))
			}
			got[keyOf(obj)] = obj.ResourceVersion
		}
		if fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("got %v, want %v", got, model)
		}
	}
}

// What servers send in order costs no index.
func TestCollectionInOrderIsASlice(t *testing.T) {
	keys := []string{"a-b/x", "a.b/x", "a/x", "a/x-1", "a/y", "aa/a", "b/a"}
	if !slices.IsSorted(keys) {
		t.Fatal("not the store's order")
	}
	var c collection[*corev1.ConfigMap]
	for _, key := range keys {
		obj := configMap("", "1")
		obj.Namespace, obj.Name, _ = strings.Cut(key, "/")
		c.put(obj)
	}
	if c.index != nil {
		t.Error("an index was made")
	}
}

func TestOlder(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true}, {"10", "9", false}, {"7", "7", false}, {"x1", "x2", false}, {"", "5", false}, {"5", "", false},
		{"99999999999999999999", "100000000000000000000", true}, {"x", "5", false},
	} {
		if got := older(test.a, test.b); got != test.want {
			t.Errorf("older(%q, %q) = %v", test.a, test.b, got)
		}
	}
}

// shortSource asks the server for three seconds, whatever the Reflector asks for.
type shortSource struct{ *source }

func (s shortSource) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[*corev1.ConfigMap], error) {
	stream, err := s.source.Watch(ctx, opts)
	return timedStream[*corev1.ConfigMap]{stream: stream, timeout: 3 * time.Second}, err
}

func TestEndInTheTimeThatTheSourceAskedForIsNotEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := shortSource{&source{opened: make(chan chan client.WatchEvent[*corev1.ConfigMap])}}
		r, err := New(src, Store[*corev1.ConfigMap](&mirror{}), Options{PagedList: true,
			OnError: func(_ string, err error) { t.Errorf("reported: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- r.Run(ctx) }()
		for range 3 {
			events := <-src.opened
			time.Sleep(3 * time.Second)
			close(events)
		}
		<-src.opened
		cancel()
		<-ran
	})
}
