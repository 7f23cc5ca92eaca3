package informertest

import (
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// delivery is which calls one handler gets, and in which order.
var delivery = []Guarantee{
	{Name: "HandlersSeeEventsInOrderPerObject", Says: "Calls about one object come in the order of its changes; with MaxUnmergedEvents, all of them.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{MaxUnmergedEvents: 1000}, nil)
		e.start()
		obj := e.create("a", "0")
		want := []string{"add a=0"}
		for n := range 20 {
			obj = e.change(obj, strconv.Itoa(n+1))
			want = append(want, fmt.Sprintf("update a=%d>%d", n, n+1))
		}
		e.remove("a")
		r.is(append(want, "delete a=20")...)
	}},
	{Name: "EachCallStartsWhereTheLastEnded", Says: "OnUpdate's old state is the one that the handler got last, whatever was skipped.", check: func(e *env) {
		var mu sync.Mutex
		at := map[string]string{}
		r, _ := e.handle(informer.HandlerOptions{}, func(c call) {
			mu.Lock()
			defer mu.Unlock()
			switch seen, there := at[c.obj.Name]; {
			case c.kind == "add" && there, c.kind != "add" && !there:
				e.Errorf("%v, though the object is there: %v", c, there)
			case c.kind == "update" && c.old.ResourceVersion != seen:
				e.Errorf("%v from version %s, but the last one delivered was %s", c, c.old.ResourceVersion, seen)
			}
			at[c.obj.Name] = c.obj.ResourceVersion
			if c.kind == "delete" {
				delete(at, c.obj.Name)
			}
		})
		e.start()
		var writers sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			writers.Go(func() {
				for range 3 {
					obj := e.create(name, "0")
					for n := range 10 {
						obj = e.change(obj, strconv.Itoa(n+1))
					}
					e.remove(name)
				}
			})
		}
		writers.Wait()
		r.marked("end")
	}},
	{Name: "NoDuplicateAdds", Says: "An object is added once for each UID, through relists and reconnects.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.create("before", "1")
		e.start()
		e.network.answer(410)
		e.network.cut()
		e.create("while", "1")
		r.awaitCall("add while=1")
		e.network.answer(0, 410)
		e.network.cut()
		r.marked("end")
		for _, name := range []string{"before", "while", "end"} {
			if calls := about(r.said(), name); len(calls) != 1 || calls[0].kind != "add" {
				e.Errorf("about %s: %v", name, calls)
			}
		}
	}},
	{Name: "HasSyncedAfterInitialHandlersDelivered", Says: "A handler's Synced is closed when it was called for every object of the first list, all of them initial; the informer's, when the cache holds them.", check: func(e *env) {
		for n := range 5 {
			e.create(fmt.Sprint("p", n), "1")
		}
		gate := make(chan struct{})
		r, registration := e.handle(informer.HandlerOptions{}, func(call) { <-gate })
		e.start()
		if registration.HasSynced() {
			e.Error("the handler has not returned from its first call, and is synced")
		}
		close(gate)
		select {
		case <-registration.Synced():
		case <-e.ctx.Done():
			e.Fatal("never synced")
		}
		r.sorted("add p0=1 initial", "add p1=1 initial", "add p2=1 initial", "add p3=1 initial", "add p4=1 initial")
	}},
	{Name: "AddedHandlerSeesAllExisting", Says: "A handler that is added late first gets OnAdd for every object, as initial, and then what follows, without gap.", check: func(e *env) {
		a := e.create("a", "1")
		e.create("b", "1")
		e.start()
		r, registration := e.handle(informer.HandlerOptions{}, nil)
		select {
		case <-registration.Synced():
		case <-e.ctx.Done():
			e.Fatal("never synced")
		}
		r.sorted("add a=1 initial", "add b=1 initial")
		e.change(a, "2")
		r.awaitCall("update a=1>2")
	}},
	{Name: "LeavingTheSelectionIsAnEnd", Says: "An object that stops matching the selector is deleted, in its last state that matched; one that begins to is added.",
		list: informer.ListOptions{LabelSelector: "value=in"}, check: func(e *env) {
			r, _ := e.handle(informer.HandlerOptions{}, nil)
			obj := e.create("a", "out")
			e.start()
			obj = e.change(obj, "in")
			r.is("add a=in")
			e.change(obj, "out")
			r.is("add a=in", "delete a=in")
		}},
	{Name: "ResyncOnlyWhenAsked", Says: "Handlers with a resync period get every object again, as an update to the same state; others do not. The server is not asked.", check: func(e *env) {
		e.create("a", "1")
		asked, _ := e.handle(informer.HandlerOptions{Resync: resyncPeriod}, nil)
		other, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		asked.awaitCall("update a=1>1")
		other.marked("end")
		other.sorted("add a=1 initial", "add end=mark")
		e.once()
	}},
	{Name: "ListsInPagesShowTheSame", Says: "Without streaming lists, and in pages, handlers get the same calls.",
		reflector: reflector.Options{PagedList: true, PageSize: 2}, check: func(e *env) {
			want := []string{"add x=1"}
			var last *corev1.ConfigMap
			for n := range 5 {
				last = e.create(fmt.Sprint("p", n), "1")
				want = append(want, fmt.Sprintf("add p%d=1 initial", n))
			}
			// A list in pages takes what the server has at hand: it must have the last.
			_, err := e.writer.Namespace(e.namespace).List(e.ctx, metav1.ListOptions{ResourceVersion: last.ResourceVersion})
			e.must(err)
			r, registration := e.handle(informer.HandlerOptions{}, nil)
			e.start()
			<-registration.Synced()
			e.create("x", "1")
			r.sorted(want...)
			if s := e.informer.ReflectorStats(); s.PagedLists != 1 || s.StreamingLists != 0 {
				e.Errorf("%+v", s)
			}
		}},
}

// notOlder reports whether version a is not before b.
func notOlder(a, b *corev1.ConfigMap) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order >= 0
}
