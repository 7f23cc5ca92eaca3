package informer

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// answerTime is how long a server takes for the bookmark of a short watch.
const answerTime = 10 * time.Millisecond

// asking is a source that answers the short watches of CatchUp, and has the others of a script.
type asking struct {
	*script
	at     atomic.Int64 // version of the bookmark; 0: there is none
	change atomic.Bool  // there is a change, which only short watches bring
	asked  atomic.Int64
	latest atomic.Int64 // when the last one was opened, in nanoseconds
}

func (a *asking) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*corev1.Pod], error) {
	if opts.TimeoutSeconds == nil || *opts.TimeoutSeconds > 3 {
		return a.script.Watch(ctx, opts)
	}
	a.asked.Add(1)
	a.latest.Store(time.Now().UnixNano())
	time.Sleep(answerTime) // of the bubble
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatInt(a.at.Load(), 10)}}
	if a.change.Load() {
		return oneEvent{watch.Modified, pod}, nil
	}
	return oneEvent{watch.Bookmark, pod}, nil
}

// List returns the version of the bookmark if it is asked for one object.
func (a *asking) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*corev1.Pod], error) {
	list, err := a.script.List(ctx, opts)
	if err == nil && opts.Limit == 1 {
		list.ResourceVersion = strconv.FormatInt(a.at.Load(), 10)
	}
	return list, err
}

type oneEvent struct {
	typ watch.EventType
	pod *corev1.Pod
}

func (e oneEvent) Next() (client.WatchEvent[*corev1.Pod], error) {
	if e.pod.ResourceVersion == "0" {
		return client.WatchEvent[*corev1.Pod]{}, errors.New("the watch has ended")
	}
	return client.WatchEvent[*corev1.Pod]{Type: e.typ, Object: e.pod}, nil
}

func (oneEvent) Close() {}

// catchingUp runs a test with an informer that has pod a at version 1.
func catchingUp(t *testing.T, test func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod])) {
	synctest.Test(t, func(t *testing.T) {
		a := &asking{script: newScript()}
		a.set("a", 1, nil)
		i := New[*corev1.Pod]("pods", a, reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- i.Run(ctx) }()
		synctest.Wait()
		test(t, a, i)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCatchUpAsksTheServer, once for all who wait, and not for what the watch brings by itself.
func TestCatchUpAsksTheServer(t *testing.T) {
	catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
		must := func(version string) {
			t.Helper()
			if err := i.CatchUp(t.Context(), version); err != nil {
				t.Error(err)
			}
		}
		must("1")
		go a.set("a", 1, nil)
		must("2")
		if n := a.asked.Load(); n != 0 {
			t.Errorf("asked %d times for what had come", n)
		}
		a.at.Store(9)
		done := make(chan error, 20)
		for range cap(done) {
			go func() { done <- i.CatchUp(t.Context(), "9") }()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := a.asked.Load(); n != 1 || i.LastSyncResourceVersion() != "9" {
			t.Errorf("asked %d times, and reached %s", n, i.LastSyncResourceVersion())
		}
		first := a.latest.Load()
		a.at.Store(12)
		must("12")
		if passed := time.Duration(a.latest.Load() - first); a.asked.Load() != 2 || passed < catchUpPause*answerTime {
			t.Errorf("asked again after %v", passed)
		}
	})
}

// TestCatchUpWithoutAnAnswer goes on waiting for the watch.
func TestCatchUpWithoutAnAnswer(t *testing.T) {
	catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := i.CatchUp(ctx, "2"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if n := a.asked.Load(); n < 100 || n > 245 {
			t.Errorf("asked %d times in a minute, want about four a second", n)
		}
		time.AfterFunc(time.Minute, func() { a.set("a", 1, nil) })
		if err := i.CatchUp(t.Context(), "2"); err != nil {
			t.Error(err)
		}
	})
}

// TestCatchUpSaysThatChangesArePending, also if the server could not be asked later.
func TestCatchUpSaysThatChangesArePending(t *testing.T) {
	for name, test := range map[string]struct {
		change, later bool // at first, and later
		pending       bool
	}{
		"at first":   {true, false, true},
		"later":      {false, true, true},
		"all along":  {true, true, true},
		"at no time": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
				say := func(change bool) {
					a.change.Store(change)
					a.at.Store(0)
					if change {
						a.at.Store(9)
					}
				}
				say(test.change)
				time.AfterFunc(2*time.Second, func() { say(test.later) })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := i.CatchUp(ctx, "9")
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoProgress) || errors.Is(err, ErrChangesPending) != test.pending {
					t.Errorf("%v, want that changes are pending: %v", err, test.pending)
				}
			})
		})
	}
}

// TestCatchUpWithVersionsOfAnotherStorage ends.
func TestCatchUpWithVersionsOfAnotherStorage(t *testing.T) {
	catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
		a.at.Store(3)
		done := make(chan error, 20)
		for range cap(done) {
			go func() { done <- i.CatchUp(t.Context(), "1000") }()
		}
		for range cap(done) {
			if err := <-done; !errors.Is(err, ErrOtherVersions) {
				t.Error(err)
			}
		}
		// The server was asked for a list to compare its version, and none is on its way.
		time.Sleep(2 * time.Minute)
		a.bookmark()
		synctest.Wait()
		if f := i.Freshness(); f.Listing || f.Age != 0 {
			t.Errorf("%+v", f)
		}
		if err := i.Healthy(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// TestFlushWaitsForTheHandler, for what it was told before, and not for what comes later.
func TestFlushWaitsForTheHandler(t *testing.T) {
	catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
		turn := make(chan struct{})
		var calls atomic.Int64
		called := func() { <-turn; calls.Add(1) }
		r, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{
			Add:    func(*corev1.Pod, bool) { called() },
			Update: func(_, _ *corev1.Pod) { called() },
		}, HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.set("b", 1, nil)
		synctest.Wait()
		flushed := make(chan error, 1)
		go func() { flushed <- r.Flush(t.Context()) }()
		synctest.Wait()
		a.set("c", 1, nil)
		synctest.Wait()
		turn <- struct{}{} // a
		synctest.Wait()
		if len(flushed) != 0 {
			t.Error("Flush has returned before the handler was called for b")
		}
		turn <- struct{}{} // b
		synctest.Wait()
		if len(flushed) != 1 || <-flushed != nil || calls.Load() != 2 {
			t.Errorf("Flush waits after %d calls", calls.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the handler is busy: %v", err)
		}
		go func() { flushed <- r.Flush(t.Context()) }()
		synctest.Wait()
		removed := r.Remove()
		close(turn)
		<-removed
		if err := <-flushed; !errors.Is(err, ErrStopped) {
			t.Errorf("after the removal: %v", err)
		}
	})
}

// TestHandlersAreToldNothingNewer than what NewestResourceVersion says at that moment: Consistent relies on it.
func TestHandlersAreToldNothingNewer(t *testing.T) {
	catchingUp(t, func(t *testing.T, a *asking, i *SharedInformer[*corev1.Pod]) {
		var told atomic.Int64
		check := func(pod *corev1.Pod) {
			told.Add(1)
			if newest := i.NewestResourceVersion(); !covers(newest, pod.ResourceVersion) {
				t.Errorf("the handler was told of version %s, and the newest is %s", pod.ResourceVersion, newest)
			}
		}
		if _, err := i.AddHandler(HandlerFuncs[*corev1.Pod]{
			Add:    func(pod *corev1.Pod, _ bool) { check(pod) },
			Update: func(_, pod *corev1.Pod) { check(pod) },
			Delete: func(pod *corev1.Pod, _ bool) { check(pod) },
		}, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "a", "c", "b"} {
			a.set(name, 1, nil)
		}
		synctest.Wait()
		if told.Load() < 4 {
			t.Errorf("the handler was called %d times", told.Load())
		}
	})
}
