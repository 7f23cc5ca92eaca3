package informer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/reflector"
)

func expiredError() error { return apierrors.NewResourceExpired("too old resource version") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestManyHandlersShareOneWatch(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var first, second record
		add(t, i, &first, HandlerOptions{})
		add(t, i, &second, HandlerOptions{})
		s.set("a", 1, nil)
		synctest.Wait()
		s.set("a", 1, nil)
		synctest.Wait()
		s.remove("a")
		synctest.Wait()
		one, two := first.take(), second.take()
		if !slices.Equal(one, two) || one[len(one)-1] != "-a3" {
			t.Errorf("got %v and %v", one, two)
		}
		if s.watches != 1 {
			t.Errorf("%d watches", s.watches)
		}
	})
}

func TestUpdatesCarryTheStateTheHandlerSawLast(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var r record
		add(t, i, &r, HandlerOptions{})
		for _, want := range []string{"+a1", "*a1>2", "*a2>3"} {
			s.set("a", 1, nil)
			r.expect(t, want)
		}
	})
}

func TestLateHandlerIsFirstToldWhatThereIs(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil)
		s.set("b", 2, nil)
		synctest.Wait()
		var r record
		registration := add(t, i, &r, HandlerOptions{})
		synctest.Wait()
		got := r.take()
		slices.Sort(got)
		if !slices.Equal(got, []string{"+a1!", "+b2!"}) || !registration.HasSynced() {
			t.Errorf("got %v, synced %v", got, registration.HasSynced())
		}
		s.set("a", 1, nil)
		r.expect(t, "*a1>3")
	})
}

func TestHandlersAddedUnderWritesMissNothing(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var writer, registered sync.WaitGroup
		writer.Go(func() {
			for n := range 2000 {
				s.set(fmt.Sprint("p", n%7), n%7, nil)
			}
		})
		views := make([]*view, 8)
		for n := range views {
			views[n] = &view{objects: map[string]string{}}
			registered.Go(func() { add(t, i, views[n], HandlerOptions{}) })
		}
		registered.Wait()
		writer.Wait()
		synctest.Wait()
		for n, v := range views {
			if v.failure != "" {
				t.Errorf("handler %d: %s", n, v.failure)
			}
			for name, pod := range s.pods {
				if v.objects[name] != pod.ResourceVersion {
					t.Errorf("handler %d ended with %s at %s, want %s", n, name, v.objects[name], pod.ResourceVersion)
				}
			}
		}
	})
}

// view applies its handler calls and fails when a call does not start from the
// state that the one before it left.
type view struct {
	objects map[string]string
	failure string
}

func (v *view) fail(format string, args ...any) {
	if v.failure == "" {
		v.failure = fmt.Sprintf(format, args...)
	}
}

func (v *view) OnAdd(pod *corev1.Pod, _ bool) {
	if at, ok := v.objects[pod.Name]; ok {
		v.fail("%s added at %s, though it is there at %s", pod.Name, pod.ResourceVersion, at)
	}
	v.objects[pod.Name] = pod.ResourceVersion
}

func (v *view) OnUpdate(old, pod *corev1.Pod) {
	if v.objects[pod.Name] != old.ResourceVersion {
		v.fail("%s updated from %s, but it was at %s", pod.Name, old.ResourceVersion, v.objects[pod.Name])
	}
	v.objects[pod.Name] = pod.ResourceVersion
}

func (v *view) OnDelete(pod *corev1.Pod, _ bool) {
	if _, ok := v.objects[pod.Name]; !ok {
		v.fail("%s deleted, but it was not there", pod.Name)
	}
	delete(v.objects, pod.Name)
}

func TestSlowHandlerCostsTheOthersNothing(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		var fast record
		registration := add(t, i, slow, HandlerOptions{})
		add(t, i, &fast, HandlerOptions{})
		s.set("a", 1, nil)
		synctest.Wait()
		fast.expect(t, "+a1")
		for range 1000 {
			s.set("a", 1, nil)
			synctest.Wait()
		}
		if got := fast.take(); len(got) != 1000 || got[999] != "*a1000>1001" {
			t.Errorf("the fast handler got %d calls", len(got))
		}
		if stats := registration.Stats(); stats.Queued != 1 || stats.Coalesced != 999 {
			t.Errorf("the slow handler's queue: %+v", stats)
		}
		close(slow.gate)
		slow.expect(t, "+a1", "*a1>1001")
	})
}

func TestEndsAreNeverMergedAway(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		add(t, i, slow, HandlerOptions{})
		s.set("x", 0, nil) // the handler is busy with this one
		synctest.Wait()
		s.set("a", 1, nil) // 2
		synctest.Wait()
		s.remove("a") // 3
		synctest.Wait()
		s.set("a", 2, nil) // 4: another of the same name
		synctest.Wait()
		s.set("a", 2, nil) // 5
		synctest.Wait()
		close(slow.gate)
		slow.expect(t, "+x1", "+a2", "-a3", "+a5")
	})
}

func TestMaxUnmergedEventsKeepsEveryEventOrFailsLoudly(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		registration := add(t, i, slow, HandlerOptions{MaxUnmergedEvents: 3})
		for range 4 { // one is being handled, three wait
			s.set("a", 1, nil)
			synctest.Wait()
		}
		if registration.Err() != nil {
			t.Fatalf("within the limit: %v", registration.Err())
		}
		for range 4 {
			slow.gate <- struct{}{}
		}
		slow.expect(t, "+a1", "*a1>2", "*a2>3", "*a3>4")
		for range 5 {
			s.set("a", 1, nil)
			synctest.Wait()
		}
		if !errors.Is(registration.Err(), ErrOverflow) {
			t.Errorf("beyond the limit: %v", registration.Err())
		}
		close(slow.gate)
		slow.expect(t, "*a4>5")
	})
}

func TestResyncsDoNotCountAgainstMaxUnmergedEvents(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		for n := range 10 {
			s.set(fmt.Sprint(n), n, nil)
		}
		s.bookmark() // a resume goes on from here
		synctest.Wait()
		slow := &record{gate: make(chan struct{})}
		registration := add(t, i, slow, HandlerOptions{MaxUnmergedEvents: 2, Resync: time.Minute})
		for range 10 {
			slow.gate <- struct{}{}
		}
		synctest.Wait()
		slow.take()
		time.Sleep(5*time.Minute + time.Second) // one call runs, and the others wait
		s.set("0", 0, nil)
		s.set("0", 0, nil)
		synctest.Wait()
		if err := registration.Err(); err != nil {
			t.Fatalf("two events of two that are allowed: %v", err)
		}
		if stats := registration.Stats(); stats.Queued != 12 {
			t.Errorf("%d calls wait, want one resync of each object, and the events: %+v", stats.Queued, stats)
		}
		close(slow.gate)
		synctest.Wait()
		got := slow.take()
		if len(got) != 13 || !slices.Equal(got[11:], []string{"*01>12", "*012>13"}) {
			t.Errorf("calls: %v", got)
		}
	})
}

func TestHandlerThatOverflowedStaysVisible(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		defer close(slow.gate)
		registration := add(t, i, slow, HandlerOptions{Name: "slow", MaxUnmergedEvents: 1})
		for range 4 {
			s.set("a", 1, nil)
			synctest.Wait()
		}
		stats := i.Stats()
		if len(stats.Handlers) != 1 || stats.Handlers[0].Name != "slow" || !errors.Is(stats.Handlers[0].Err, ErrOverflow) || stats.FailedHandlers != 1 {
			t.Errorf("after the overflow: %+v", stats)
		}
		registration.Remove()
		if stats := i.Stats(); len(stats.Handlers) != 0 || stats.FailedHandlers != 1 {
			t.Errorf("after Remove: %+v", stats)
		}
	})
}

func TestPanicIsContained(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var other record
		calls := 0
		registration := add(t, i, HandlerFuncs[*corev1.Pod]{Add: func(*corev1.Pod, bool) {
			if calls++; calls == 1 {
				panic("on purpose")
			}
		}}, HandlerOptions{})
		add(t, i, &other, HandlerOptions{})
		s.set("a", 1, nil)
		s.set("b", 2, nil)
		other.expect(t, "+a1", "+b2")
		if stats := registration.Stats(); calls != 2 || stats.Panics != 1 || stats.Delivered != 1 {
			t.Errorf("%d calls, %+v", calls, stats)
		}
	})
}

func TestRemoveWaitsForTheRunningCall(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		registration := add(t, i, slow, HandlerOptions{})
		s.set("a", 1, nil)
		s.set("b", 2, nil)
		synctest.Wait()
		ended := registration.Remove()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("a call is running, and Remove's channel is closed")
		default:
		}
		slow.gate <- struct{}{}
		<-ended
		slow.expect(t, "+a1")
		<-registration.Remove() // twice is harmless
	})
}

func TestHandlerMayRemoveItself(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		calls := 0
		var registration *Registration
		registration = add(t, i, HandlerFuncs[*corev1.Pod]{Add: func(*corev1.Pod, bool) {
			calls++
			registration.Remove()
		}}, HandlerOptions{})
		s.set("a", 1, nil)
		s.set("b", 2, nil)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestResyncGoesToThoseWhoAskedOnly(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var asked, other record
		add(t, i, &asked, HandlerOptions{Resync: time.Minute})
		add(t, i, &other, HandlerOptions{})
		s.set("a", 1, nil)
		asked.expect(t, "+a1")
		other.expect(t, "+a1")
		time.Sleep(2*time.Minute + time.Second)
		asked.expect(t, "*a1>1", "*a1>1")
		other.expect(t)
	})
}

func TestMissedEndHasNoKnownFinalState(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var r record
		add(t, i, &r, HandlerOptions{})
		s.set("a", 1, nil)
		s.set("stays", 2, nil)
		r.expect(t, "+a1", "+stays2")
		s.mu.Lock()
		delete(s.pods, "a") // without an event
		s.version++
		s.mu.Unlock()
		s.forget()
		time.Sleep(time.Minute) // the back-off
		r.expect(t, "-a1?")
		if stats := i.ReflectorStats(); stats.ListCount() != 2 {
			t.Errorf("lists: %+v", stats)
		}
	})
}

func TestTransformComesBeforeTheStoreAndTheHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("listed", 1, map[string]string{"drop": "me"})
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
		err := i.SetTransform(func(pod *corev1.Pod) (*corev1.Pod, error) {
			if pod.Name == "odd" {
				return nil, errors.New("cannot")
			}
			pod = pod.DeepCopy()
			pod.Labels = nil
			return pod, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		labelled := map[string]bool{}
		add(t, i, HandlerFuncs[*corev1.Pod]{Add: func(pod *corev1.Pod, _ bool) { labelled[pod.Name] = pod.Labels != nil }}, HandlerOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		s.set("watched", 2, map[string]string{"drop": "me"})
		s.set("odd", 3, map[string]string{"stay": "here"})
		synctest.Wait()
		if labelled["listed"] || labelled["watched"] || !labelled["odd"] {
			t.Errorf("labels left: %v", labelled)
		}
		if i.SetTransform(nil) == nil {
			t.Error("a transform was accepted after the start")
		}
		cancel()
		<-done
	})
}

func TestSyncedOnceTheFirstListIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, objects := range map[string]int{"empty list": 0, "three objects": 3} {
			s := newScript()
			for n := range objects {
				s.set(fmt.Sprint(n), n, nil)
			}
			i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true})
			slow := &record{gate: make(chan struct{})}
			registration := add(t, i, slow, HandlerOptions{})
			if i.HasSynced() || registration.HasSynced() {
				t.Errorf("%s: synced before the start", name)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- i.Run(ctx) }()
			synctest.Wait()
			if !i.HasSynced() || i.Lister().Len() != objects || registration.HasSynced() != (objects == 0) {
				t.Errorf("%s: informer %v, handler %v, %d objects", name, i.HasSynced(), registration.HasSynced(), i.Lister().Len())
			}
			close(slow.gate)
			synctest.Wait()
			if !registration.HasSynced() {
				t.Errorf("%s: the handler got every call and is not synced", name)
			}
			cancel()
			<-done
		}
	})
}

func TestListerSelects(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		err := i.AddIndexers(cache.Indexers[*corev1.Pod]{"color": func(pod *corev1.Pod) ([]string, error) {
			return []string{pod.Labels["color"]}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.set("a", 1, map[string]string{"color": "red"})
		s.set("b", 2, map[string]string{"color": "blue"})
		synctest.Wait()
		lister := i.Lister()
		names := func(pods []*corev1.Pod) string {
			var names []string
			for _, pod := range pods {
				names = append(names, pod.Name)
			}
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		red := labels.SelectorFromSet(labels.Set{"color": "red"})
		byColor, err := lister.ByIndex("color", "blue")
		for _, c := range []struct{ what, got, want string }{
			{"all", names(lister.List("", nil)), "a b"},
			{"a namespace", names(lister.List("ns", nil)), "a b"},
			{"another namespace", names(lister.List("none", nil)), ""},
			{"by label", names(lister.List("ns", red)), "a"},
			{"by index", names(byColor), "b"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
			}
		}
		if err != nil {
			t.Error(err)
		}
		if _, err := lister.ByIndex("shape", "round"); err == nil {
			t.Error("an index that does not exist was read")
		}
		if pod, ok := lister.Get("ns", "a"); !ok || pod.Name != "a" {
			t.Errorf("Get: %v, %v", pod, ok)
		}
	})
}

func TestStoppedInformerStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New[*corev1.Pod]("pods", newScript(), reflector.Options{PagedList: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		synctest.Wait()
		cancel()
		<-done
		if err := i.Run(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("Run: %v", err)
		}
		if _, err := i.AddHandler(&record{}, HandlerOptions{}); !errors.Is(err, ErrStopped) {
			t.Errorf("AddHandler: %v", err)
		}
	})
}

func TestHandlersAreChecked(t *testing.T) {
	i := New[*corev1.Pod]("pods", newScript(), reflector.Options{})
	if _, err := i.AddHandler(nil, HandlerOptions{}); err == nil {
		t.Error("no handler was accepted")
	}
	if _, err := i.AddHandler((*HandlerFuncs[*corev1.Pod])(nil), HandlerOptions{}); err == nil {
		t.Error("a nil pointer was accepted for a handler")
	}
	if _, err := i.AddHandler(&record{}, HandlerOptions{MaxUnmergedEvents: -1}); err == nil {
		t.Error("a negative limit was accepted")
	}
}

func TestHandlersHaveTheFactorysResyncUnlessTheySay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, nil)
		i := newInformer("pods", []origin[*corev1.Pod]{{source: s}}, reflector.Options{PagedList: true}, time.Minute)
		var silent, often, never record
		add(t, i, &silent, HandlerOptions{})
		add(t, i, &often, HandlerOptions{Resync: 20 * time.Second})
		add(t, i, &never, HandlerOptions{Resync: -1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		time.Sleep(70 * time.Second)
		silent.expect(t, "+a1!", "*a1>1")
		often.expect(t, "+a1!", "*a1>1", "*a1>1", "*a1>1")
		never.expect(t, "+a1!")
		cancel()
		<-done
	})
}

// When another object took a name while no watch was open, handlers get
// OnDelete and OnAdd, never OnUpdate.
func TestUnseenReplacementIsAnEndAndABeginning(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		var r record
		add(t, i, &r, HandlerOptions{})
		s.set("a", 1, nil)
		r.expect(t, "+a1")
		s.set("a", 2, nil)
		r.expect(t, "-a1?", "+a2")
	})
}

func TestMaxUnmergedEventsDoesNotCountInitialObjects(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		for n := range 10 {
			s.set(fmt.Sprint(n), n, nil)
		}
		synctest.Wait()
		var r record
		registration := add(t, i, &r, HandlerOptions{MaxUnmergedEvents: 1})
		synctest.Wait()
		if got := r.take(); len(got) != 10 || registration.Err() != nil || !registration.HasSynced() {
			t.Errorf("got %v, %v", got, registration.Err())
		}
	})
}

// The informer's own loop may fall behind, too, if an index function is slow.
// A handler that wants every event gets them, or learns that it did not.
func TestMaxUnmergedEventsCountsWhatTheCacheDoesNotShow(t *testing.T) {
	for limit, want := range map[int]error{100: nil, 30: ErrOverflow} {
		in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
			gate := make(chan struct{})
			must(t, i.AddIndexers(cache.Indexers[*corev1.Pod]{"slow": func(pod *corev1.Pod) ([]string, error) {
				if pod.Name == "blocks" {
					<-gate
				}
				return nil, nil
			}}))
			var r record
			registration := add(t, i, &r, HandlerOptions{MaxUnmergedEvents: limit})
			s.set("blocks", 1, nil)
			synctest.Wait()
			for range 59 {
				s.set("a", 2, nil)
			}
			synctest.Wait()
			close(gate)
			synctest.Wait()
			if got := r.take(); !errors.Is(registration.Err(), want) || (len(got) == 60) != (want == nil) {
				t.Errorf("limit %d: got %d, %v", limit, len(got), registration.Err())
			}
		})
	}
}

func TestHandlerThatEndsItsGoroutineGoesOn(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		calls := 0
		registration := add(t, i, HandlerFuncs[*corev1.Pod]{Add: func(*corev1.Pod, bool) {
			if calls++; calls == 1 {
				runtime.Goexit()
			}
		}}, HandlerOptions{})
		s.set("a", 1, nil)
		s.set("b", 2, nil)
		synctest.Wait()
		if stats := registration.Stats(); calls != 2 || stats.Panics != 1 || stats.Delivered != 1 || stats.Lag != 0 {
			t.Errorf("%d calls, %+v", calls, stats)
		}
		<-registration.Remove()
	})
}

func TestLagIsHowLongThereHasBeenSomethingToTell(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		slow := &record{gate: make(chan struct{})}
		registration := add(t, i, slow, HandlerOptions{Name: "slow"})
		s.set("a", 1, nil)
		synctest.Wait()
		time.Sleep(time.Minute)
		if stats := i.Stats(); len(stats.Handlers) != 1 || stats.Handlers[0].Lag != time.Minute || stats.Handlers[0].Name != "slow" {
			t.Errorf("while it works: %+v", stats)
		}
		close(slow.gate)
		synctest.Wait()
		if stats := registration.Stats(); stats.Lag != 0 {
			t.Errorf("when idle: %+v", stats)
		}
	})
}

// The version an informer has reached is that of its cache, and it moves
// with changes as with lists.
func TestLastSyncResourceVersionIsThatOfTheCache(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		s.set("a", 1, nil) // version "0" names no state: a change after it moves nothing
		for want := 2; want < 5; want++ {
			s.set("a", 1, nil)
			synctest.Wait()
			if got := i.LastSyncResourceVersion(); got != fmt.Sprint(want) {
				t.Errorf("reached %q, want %d", got, want)
			}
		}
	})
}

func TestFailingIndexFunctionLosesNoObject(t *testing.T) {
	in(t, func(t *testing.T, s *script, i *SharedInformer[*corev1.Pod]) {
		err := i.AddIndexers(cache.Indexers[*corev1.Pod]{"broken": func(*corev1.Pod) ([]string, error) {
			return nil, errors.New("cannot")
		}})
		if err != nil {
			t.Fatal(err)
		}
		var r record
		add(t, i, &r, HandlerOptions{})
		s.set("a", 1, nil)
		r.expect(t, "+a1")
		if _, ok := i.Lister().Get("ns", "a"); !ok || i.Stats().Unindexed != 1 {
			t.Errorf("there: %v, %+v", ok, i.Stats())
		}
	})
}
