package informer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

func TestWaitForResourceVersionWakesWhenTheCacheShowsIt(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		result := make(chan error, 1)
		wait := func(version string) {
			t.Helper()
			go func() { result <- i.WaitForResourceVersion(t.Context(), version) }()
			synctest.Wait()
		}
		expectWaiting := func() {
			t.Helper()
			select {
			case err := <-result:
				t.Fatalf("did not wait: %v", err)
			default:
			}
		}
		expectDone := func() {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-result:
				if err != nil {
					t.Error(err)
				}
			default:
				t.Fatal("still waiting")
			}
		}
		wait("")
		expectDone()
		wait("2")
		expectWaiting()
		s.set("a", 1, nil)
		synctest.Wait()
		expectWaiting()
		s.set("a", 1, nil)
		expectDone()
		wait("1")
		expectDone()
		wait("10") // which is before 9 as a string
		for range 7 {
			s.set("b", 1, nil)
		}
		synctest.Wait()
		expectWaiting()
		s.bookmark() // no object changes, and the version is reached
		expectDone()
		if n := i.waits.count.Load(); n != 0 || len(i.waits.all) != 0 {
			t.Errorf("%d are still noted", n)
		}
	})
}

// What cannot be a version of the server is refused at once, or as soon as the server has said
// what its versions are.
func TestWaitsRefuseWhatIsNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		early, done := make(chan error, 1), make(chan error, 1)
		go func() { early <- i.WaitForResourceVersion(ctx, "rubbish") }()
		synctest.Wait()
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		limited, cancelLimited := context.WithTimeout(t.Context(), time.Second)
		defer cancelLimited()
		for what, err := range map[string]error{"from before the list": received(early),
			"rubbish": i.WaitForResourceVersion(limited, "rubbish"), "a leading zero": i.WaitForResourceVersion(limited, "01")} {
			if !errors.Is(err, ErrOtherVersions) || !strings.Contains(err.Error(), "informer pods has reached resourceVersion 1") {
				t.Errorf("%s: %v", what, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// received is what is in the channel, or an error that says that there is nothing.
func received(from chan error) error {
	select {
	case err := <-from:
		return err
	default:
		return errors.New("nothing")
	}
}

// lettered is a script whose versions are no numbers.
type lettered struct{ *script }

func (s lettered) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list, err := s.script.List(ctx, opts)
	if err == nil {
		list.ResourceVersion = "x" + list.ResourceVersion
	}
	return list, err
}

func (s lettered) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	opts.ResourceVersion = strings.TrimPrefix(opts.ResourceVersion, "x")
	watching, err := s.script.Watch(ctx, opts)
	return letteredStream{watching}, err
}

type letteredStream struct{ reflector.Stream[*corev1.Pod] }

func (s letteredStream) Next() (client.WatchEvent[*corev1.Pod], error) {
	ev, err := s.Stream.Next()
	if err == nil {
		ev.Object = ev.Object.DeepCopy()
		ev.Object.ResourceVersion = "x" + ev.Object.ResourceVersion
	}
	return ev, err
}

// A server may have versions that are no numbers. They are waited for as they are.
func TestWaitForVersionsThatAreNoNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", lettered{s}, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		result, done := make(chan error, 1), make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		go func() { result <- i.WaitForResourceVersion(ctx, "x2") }()
		synctest.Wait()
		s.set("a", 1, nil)
		synctest.Wait()
		if err := received(result); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestListerAfterShowsTheWrite(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil)
		written := s.set("a", 1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lister, err := i.ListerAfter(ctx, written.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		if pod, ok := lister.Get("ns", "a"); !ok || pod.ResourceVersion != written.ResourceVersion {
			t.Errorf("%v, %v", pod, ok)
		}
	})
}

func TestWaitForEndsWithItsContextAndWithTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		early, cancelEarly := context.WithTimeout(context.Background(), time.Second)
		defer cancelEarly()
		if err := i.WaitForResourceVersion(early, "0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the start: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		limited, cancelLimited := context.WithTimeout(context.Background(), time.Second)
		defer cancelLimited()
		if err := i.WaitForResourceVersion(limited, "2"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"1"`) {
			t.Errorf("with a deadline: %v", err)
		}
		result := make(chan error, 1)
		go func() { result <- i.WaitForResourceVersion(context.Background(), "2") }()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, ErrStopped) {
			t.Errorf("stopped: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// absent is a server that does not have the resource.
type absent struct{ *script }

func (absent) List(context.Context, metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "")
}

// A wait that ends before there is a list says what the server has answered, and that is no answer about an object.
func TestWaitsSayWhatTheServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New[*corev1.Pod]("pods", absent{newScript()}, reflector.Options{PagedList: true, GoneAfter: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		limited, cancelLimited := context.WithTimeout(t.Context(), time.Second)
		defer cancelLimited()
		for _, version := range []string{"", "2"} {
			err := i.WaitForResourceVersion(limited, version)
			if !errors.Is(err, context.DeadlineExceeded) || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "not found") {
				t.Errorf("waiting for %q: %v", version, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// An informer that cannot run has stopped, and says why.
func TestWaitsOfAnInvalidInformerSayWhy(t *testing.T) {
	i := New[*corev1.Pod]("pods", newScript(), reflector.Options{WatchTimeout: -1})
	_ = i.Run(t.Context())
	<-i.Done()
	for _, version := range []string{"", "2"} {
		err := i.WaitForResourceVersion(t.Context(), version)
		if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "WatchTimeout") || strings.Count(err.Error(), "informer pods") != 1 {
			t.Errorf("waiting for %q: %v", version, err)
		}
	}
	if _, err := i.AddHandler(&record{}, HandlerOptions{}); !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "WatchTimeout") {
		t.Errorf("a handler: %v", err)
	}
}

func TestCoversComparesNumbersAndElseEquality(t *testing.T) {
	for _, test := range []struct {
		reached, wanted string
		want            bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"9", "9", true}, {"", "1", false},
		{"x9", "x9", true}, {"x9", "x8", false}, {"99999999999999999999999", "99999999999999999999998", true},
	} {
		if got := covers(test.reached, test.wanted); got != test.want {
			t.Errorf("%q covers %q: %v", test.reached, test.wanted, got)
		}
	}
}

func TestFreshnessOfAWatchThatSaysNothing(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil)
		s.set("a", 1, nil)
		synctest.Wait()
		if f := i.Freshness(); f.Age != 0 || f.Version != "2" || f.Queued != 0 || !f.Synced || f.Restored || f.Listing {
			t.Errorf("at first: %+v", f)
		}
		time.Sleep(2 * time.Minute)
		if f := i.Freshness(); f.Age != 2*time.Minute {
			t.Errorf("two silent minutes: %+v", f)
		}
		if err := i.Healthy(time.Minute); err == nil || !strings.Contains(err.Error(), "2m0s old") {
			t.Errorf("healthy: %v", err)
		}
		s.bookmark()
		synctest.Wait()
		if f := i.Freshness(); f.Age != 0 || f.Version != "3" {
			t.Errorf("after a bookmark: %+v", f)
		}
		if err := i.Healthy(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// The informer is synced when the last object of the first list is applied, which may
// be a moment before the goroutine that listed goes on.
func TestFreshnessAtTheEndOfTheFirstList(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil)
		synctest.Wait()
		i.namespaceWatches[0].frozen.Store(&time.Time{})
		if err := i.Healthy(time.Minute); err != nil {
			t.Error(err)
		}
		if f := i.Freshness(); f.Age != 0 {
			t.Errorf("%+v", f)
		}
	})
}

func TestFreshnessDuringAListAfterTheFirst(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil)
		synctest.Wait()
		i.namespaceWatches[0].listBegins() // as a list that lasts does
		time.Sleep(time.Minute)
		if f := i.Freshness(); !f.Listing || f.Age != time.Minute {
			t.Errorf("while it lasts: %+v", f)
		}
		s.forget()
		time.Sleep(time.Minute)
		synctest.Wait()
		if f := i.Freshness(); f.Listing || f.Age > time.Minute {
			t.Errorf("when it is complete: %+v", f)
		}
	})
}

func TestNoViewIsInfinitelyOld(t *testing.T) {
	i := New[*corev1.Pod]("pods", newScript(), reflector.Options{})
	if f := i.Freshness(); !f.AsOf.IsZero() || f.Age < 1000*time.Hour || f.Synced {
		t.Errorf("%+v", f)
	}
	if err := i.Healthy(time.Hour); err == nil {
		t.Error("an informer that has not started is healthy")
	}
}

// A wait for an informer that was never started says so.
func TestWaitsForUnstartedInformers(t *testing.T) {
	i := New[*corev1.Pod]("pods", nil, reflector.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, version := range []string{"", "5"} {
		if err := i.WaitForResourceVersion(ctx, version); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "informer pods was never started: call factory.Start") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// A program that forgets Start, or the error of the call that makes the client, is told so:
// it would take empty caches for complete ones.
func TestWaitForSyncSaysWhatWasForgotten(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{})
	must(t, err)
	f := NewFactory(c, Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, f.WaitForSync(t.Context())) // informers may all be made on first use
	own := For[*corev1.Pod](f, ListOptions{})
	if err := f.WaitForSync(t.Context()); err == nil || !strings.Contains(err.Error(), "call Factory.Start") {
		t.Errorf("before the start: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, own.Run(ctx))
	must(t, f.WaitForSync(t.Context())) // the program runs it itself

	f = NewFactory(nil, Options{Logger: slog.New(slog.DiscardHandler)})
	For[*corev1.Pod](f, ListOptions{})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err == nil || !strings.Contains(err.Error(), "was the error of the call that makes it ignored?") {
		t.Errorf("without a client: %v", err)
	}
}

// An informer that has no list yet says what the server or the network answered last.
func TestHealthySaysWhy(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{})
	must(t, err)
	failed := make(chan struct{})
	once := sync.OnceFunc(func() { close(failed) })
	f := NewFactory(c, Options{Logger: slog.New(slog.DiscardHandler), Reflector: reflector.Options{OnError: func(string, error) { once() }}})
	For[*corev1.Pod](f, ListOptions{})
	f.Start(t.Context())
	<-failed
	if err := f.Healthy(time.Hour); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "there is no complete list yet: ") {
		t.Errorf("healthy: %v", err)
	}
}

// A readiness probe must not say that caches are ready that nothing fills: no informer was
// started yet, or none is running any more.
func TestFactoryIsHealthyOnlyWhileInformersRun(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{})
	must(t, err)
	f := NewFactory(c, Options{Logger: slog.New(slog.DiscardHandler)})
	says := func(when, what string) {
		t.Helper()
		if err := f.Healthy(time.Hour); (err == nil) != (what == "") || err != nil && !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", when, err)
		}
	}
	says("without informers", "") // they may all be made on first use
	pods := For[*corev1.Pod](f, ListOptions{})
	says("before the start", "none of the informers was started")
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx)
	says("after the start", "no complete list yet")
	For[*corev1.Secret](f, ListOptions{}) // perhaps never started, on purpose
	says("with another informer", "no complete list yet")
	cancel()
	<-pods.Done()
	says("after the end", "informer pods has stopped")
	f.Remove(pods)
	says("without it", "none of the informers was started")

	f = NewFactory(c, Options{Logger: slog.New(slog.DiscardHandler)})
	own := For[*corev1.Pod](f, ListOptions{})
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- own.Run(ctx) }()
	cancel()
	must(t, <-ended)
	says("an informer that the program runs itself", "informer pods has stopped")

	f = NewFactory(c, Options{Resync: -1, Logger: slog.New(slog.DiscardHandler), Disk: DiskOptions{Interval: time.Hour}})
	For[*corev1.Pod](f, ListOptions{})
	says("with options that cannot be used", "none of the informers was started")
	f.Start(t.Context())
	says("with options that cannot be used, after the start", "Disk")
}
