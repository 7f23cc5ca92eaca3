package controller

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/informer"
)

// step is a source that is synced when it is closed.
type step chan struct{}

func (s step) Synced() <-chan struct{} { return s }

func nothing(context.Context, Key) (Result, error) { return Result{}, nil }

func TestWorkersWaitForSourcesThatAreAddedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := made(t, nothing, Options{})
		first, second := make(step), make(step)
		c.RequireSync("first", first)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		late := c.RequireSync("second", second)
		close(first)
		synctest.Wait()
		if c.HasSynced() || isClosed(late.Synced()) {
			t.Error("the second source is not synced")
		}
		close(second)
		synctest.Wait()
		if !c.HasSynced() || !isClosed(late.Synced()) {
			t.Error("both sources are synced")
		}
		third := make(step)
		latest := c.RequireSync("third", third)
		synctest.Wait()
		if isClosed(latest.Synced()) {
			t.Error("the third source is not synced")
		}
		close(third)
		<-latest.Synced()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if afterwards := c.RequireSync("fourth", third); !isClosed(afterwards.Remove()) {
			t.Error("what comes after the end is not done")
		}
	})
}

func TestRemovedSourcesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := made(t, nothing, Options{})
		before := c.RequireSync("removed before", never{})
		during := c.RequireSync("removed while waiting", never{})
		<-before.Remove()
		<-before.Remove()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		if c.HasSynced() {
			t.Error("a source is not synced")
		}
		<-during.Remove()
		<-c.Synced()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsNameOnlySourcesThatAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := made(t, nothing, Options{SyncTimeout: time.Minute})
		there := make(step)
		close(there)
		c.RequireSync("there", there)
		c.RequireSync("one", never{})
		<-c.RequireSync("gone", never{}).Remove()
		c.RequireSync("two", never{})
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "of one, two:") {
			t.Errorf("got %v", err)
		}
	})
}

// Sources come and go from many goroutines, before, while and after Run; all
// of them end.
func TestSourcesComeAndGoAtAnyTime(t *testing.T) {
	for range 50 {
		c := made(t, nothing, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ready := make(step)
		close(ready)
		var others sync.WaitGroup
		for n := range 8 {
			others.Go(func() {
				for range 20 {
					var source Source = ready
					if n%2 == 0 {
						source = never{}
					}
					r := c.RequireSync("source", source)
					if n%4 < 2 {
						<-r.Remove()
					} else {
						defer r.Remove()
					}
				}
			})
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		others.Wait()
		<-c.Synced()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestSourcesAreChecked(t *testing.T) {
	before := made(t, nothing, Options{})
	before.RequireSync("nothing", nil)
	if err := before.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing: the Source is nil") {
		t.Errorf("got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		while := made(t, nothing, Options{})
		ended := make(chan error, 1)
		go func() { ended <- while.Run(t.Context()) }()
		<-while.Synced()
		while.RequireSync("nothing", nil)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "nothing: the Source is nil") {
			t.Errorf("got %v", err)
		}
	})
}

// It is an error of Run, as what else is wrong with a source.
func TestANilInformerIsAnErrorOfRun(t *testing.T) {
	var none *informer.SharedInformer[*corev1.Pod]
	for name, add := range map[string]func(*Controller){
		"For":    func(c *Controller) { For(c, none) },
		"Owns":   func(c *Controller) { Owns[*corev1.Node](c, none) },
		"Watch":  func(c *Controller) { Watch(c, none, EnqueueObject[*corev1.Pod]) },
		"Handle": func(c *Controller) { Handle(c, none, informer.HandlerFuncs[*corev1.Pod]{}) },
	} {
		c := made(t, nothing, Options{})
		add(c)
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the informer is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
