package informertest

import (
	"errors"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/informer"
)

// resyncPeriod is short, so that a real server's test does not wait for long.
const resyncPeriod = 100 * time.Millisecond

// handlers is what many handlers of one informer may rely on.
var handlers = []Guarantee{
	{Name: "ManyHandlersShareOneWatch", Says: "Handlers cost the server nothing.", check: func(e *env) {
		first, _ := e.handle(informer.HandlerOptions{}, nil)
		second, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "1")
		first.is("add a=1")
		second.is("add a=1")
		if s := e.informer.ReflectorStats(); s.Watches != 1 {
			e.Errorf("%d watches", s.Watches)
		}
	}},
	{Name: "SlowHandlerDoesNotDelayOthers", Says: "A handler that blocks costs the others nothing, and gets the newest state when it goes on; what waits for it is bounded by the number of objects.", check: func(e *env) {
		called, gate := make(chan struct{}, 2), make(chan struct{})
		slow, registration := e.handle(informer.HandlerOptions{}, func(call) { called <- struct{}{}; <-gate })
		fast, _ := e.handle(informer.HandlerOptions{MaxUnmergedEvents: 1000}, nil)
		e.start()
		obj := e.create("a", "0")
		fast.awaitCall("add a=0")
		<-called // otherwise the update may replace what the slow handler is called with
		for n := range 30 {
			obj = e.change(obj, strconv.Itoa(n+1))
		}
		fast.awaitCall("update a=29>30")
		if s := registration.Stats(); s.Queued != 1 || s.Coalesced != 29 {
			e.Errorf("%+v", s)
		}
		close(gate)
		slow.is("add a=0", "update a=0>30")
	}},
	{Name: "EndsAreNeverMergedAway", Says: "A slow handler gets OnDelete for the object it knew, and OnAdd for another that took its name.", check: func(e *env) {
		called, gate := make(chan struct{}, 10), make(chan struct{})
		slow, _ := e.handle(informer.HandlerOptions{}, func(call) { called <- struct{}{}; <-gate })
		fast, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "first")
		fast.awaitCall("add a=first")
		<-called
		e.remove("a")
		e.create("a", "second")
		e.remove("a")
		obj := e.create("a", "third")
		e.change(obj, "fourth")
		fast.marked("end")
		close(gate)
		slow.marked("really")
		slow.sorted("add a=first", "delete a=first", "add a=fourth", "add end=mark", "add really=mark")
	}},
	{Name: "MaxUnmergedEventsFailsLoudly", Says: "A handler with MaxUnmergedEvents that falls too far behind is removed, and Registration.Err says why.", check: func(e *env) {
		gate := make(chan struct{})
		_, registration := e.handle(informer.HandlerOptions{MaxUnmergedEvents: 3}, func(call) { <-gate })
		e.start()
		obj := e.create("a", "0")
		for n := range 10 {
			obj = e.change(obj, strconv.Itoa(n+1))
		}
		e.must(e.informer.WaitForResourceVersion(e.ctx, obj.ResourceVersion))
		close(gate)
		select {
		case <-registration.Done():
		case <-e.ctx.Done():
			e.Fatal("the handler goes on")
		}
		if err := registration.Err(); !errors.Is(err, informer.ErrOverflow) {
			e.Errorf("error %v", err)
		}
	}},
	{Name: "PanicIsContained", Says: "A handler that panics is called for the next object, and so are the others.", check: func(e *env) {
		panicking, registration := e.handle(informer.HandlerOptions{}, func(c call) {
			if c.obj.Name == "a" {
				panic("on purpose")
			}
		})
		other, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "1")
		e.create("b", "1")
		other.is("add a=1", "add b=1")
		panicking.is("add b=1")
		if s := registration.Stats(); s.Panics != 1 {
			e.Errorf("%+v", s)
		}
	}},
	{Name: "RemovedHandlerIsNotCalled", Says: "No call begins after Remove has returned, and its channel is closed when none runs; the others go on.", check: func(e *env) {
		removed, registration := e.handle(informer.HandlerOptions{}, nil)
		other, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "1")
		removed.is("add a=1")
		<-registration.Remove()
		e.create("b", "1")
		other.is("add a=1", "add b=1")
		removed.is("add a=1")
	}},
	{Name: "HandlersMayCallTheInformer", Says: "A handler may read the lister, add handlers, remove itself and ask for statistics.", check: func(e *env) {
		var registration *informer.Registration
		inner := make(chan string, 10)
		added := make(chan struct{})
		_, registration = e.handle(informer.HandlerOptions{}, func(c call) {
			<-added
			if _, ok := e.informer.Lister().Get(e.namespace, c.obj.Name); !ok {
				e.Errorf("%v is not in the lister", c)
			}
			_ = e.informer.Stats()
			_ = e.informer.Freshness()
			if _, err := e.informer.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
				Add: func(obj *corev1.ConfigMap, _ bool) { inner <- obj.Name },
			}, informer.HandlerOptions{}); err != nil {
				e.Error(err)
			}
			registration.Remove()
		})
		close(added)
		e.start()
		e.create("a", "1")
		select {
		case name := <-inner:
			if name != "a" {
				e.Errorf("the inner handler was called for %s", name)
			}
		case <-e.ctx.Done():
			e.Fatal("the handler added by a handler heard nothing")
		}
		<-registration.Done()
	}},
	{Name: "ShutdownEndsEverything", Says: "After Shutdown no call runs or begins, no watch is open, waiting ends, and nothing starts again.", check: func(e *env) {
		r, registration := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "1")
		r.is("add a=1")
		e.factory.Shutdown()
		<-e.informer.Done()
		<-registration.Done()
		if open, _ := e.network.opened(); open != 0 {
			e.Errorf("%d watches are open", open)
		}
		b := e.create("b", "1")
		if err := e.informer.WaitForResourceVersion(e.ctx, b.ResourceVersion); !errors.Is(err, informer.ErrStopped) {
			e.Errorf("WaitForResourceVersion: %v", err)
		}
		if _, err := e.informer.AddHandler(r, informer.HandlerOptions{}); !errors.Is(err, informer.ErrStopped) {
			e.Errorf("AddHandler: %v", err)
		}
		e.factory.Start(e.ctx)
		r.is("add a=1")
	}},
}
