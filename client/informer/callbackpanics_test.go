package informer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/reflector"
)

// An OnMutation that panics costs its own call: after a handler, in a comparison and in the last one.
func TestOnMutationThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.set("a", 1, map[string]string{"app": "web"})
		s.set("b", 2, map[string]string{"app": "web"})
		var log bytes.Buffer
		i := New[*corev1.Pod]("pods", s, reflector.Options{PagedList: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var reports, adds atomic.Int64
		must(t, i.SetMutationDetection(MutationDetection{Interval: interval, OnMutation: func(Mutation) {
			reports.Add(1)
			panic("report")
		}}))
		add(t, i, HandlerFuncs[*corev1.Pod]{Add: func(pod *corev1.Pod, _ bool) {
			adds.Add(1)
			if pod.Name == "a" {
				pod.Labels["app"] = "mine"
			}
		}}, HandlerOptions{Name: "careless"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		write := func(app string) {
			synctest.Wait()
			pod, _ := i.Lister().Get("ns", "b")
			pod.Labels["app"] = app
		}
		write("theirs")
		i.mutations.checkAll()
		write("yet another")
		s.set("c", 3, nil)
		synctest.Wait()
		if n := adds.Load(); n != 3 {
			t.Errorf("the handler was called %d times", n)
		}
		cancel() // compares all once more
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, h := range i.Stats().Handlers {
			if h.Panics != 0 {
				t.Errorf("%+v", h)
			}
		}
		if n := i.Stats().Mutations; n != 3 || reports.Load() != 3 || i.mutations.panics.Count() != 3 {
			t.Errorf("%d mutations, %d reports, %d panics", n, reports.Load(), i.mutations.panics.Count())
		}
		if !strings.Contains(log.String(), "OnMutation panicked: report") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// An Identify that panics is a server that does not say which cluster it is: the restored state is
// served as stale, and confirmed when there is an answer.
func TestIdentifyThatPanics(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := oneLife(t, dir)
		s.remove("b")
		var answers atomic.Bool
		l := begin(t, s, dir, func(o *DiskOptions) {
			o.Identify = func(context.Context) (string, error) {
				if !answers.Load() {
					panic("identity")
				}
				return "one", nil
			}
		})
		defer l.stop()
		time.Sleep(identityPatience)
		l.record.expectUnordered(t, "+a1!", "+b2!")
		if f := l.Freshness(); !f.Restored || f.Synced {
			t.Errorf("freshness %+v", f)
		}
		if !strings.Contains(l.log.String(), "DiskOptions.Identify panicked: identity") || !strings.Contains(l.log.String(), "callbackpanics_test.go") {
			t.Errorf("logged %s", l.log.String())
		}
		answers.Store(true)
		time.Sleep(time.Minute)
		l.record.expect(t, "-b3")
		if !l.HasSynced() || s.listCount() != 1 {
			t.Errorf("synced %v, %d lists", l.HasSynced(), s.listCount())
		}
	})
}
