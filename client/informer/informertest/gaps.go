package informertest

import (
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// gaps is what holds when the connection breaks, or the server's history no
// longer has what was missed.
var gaps = []Guarantee{
	{Name: "CutConnectionsResume", Says: "A watch that breaks is resumed from the last resourceVersion, without a list, and nothing is lost.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{MaxUnmergedEvents: 1000}, nil)
		e.start()
		obj := e.create("a", "0")
		r.is("add a=0")
		for _, value := range []string{"1", "2", "3"} {
			e.network.cut()
			obj = e.change(obj, value)
		}
		r.is("add a=0", "update a=0>1", "update a=1>2", "update a=2>3")
		e.once()
	}},
	{Name: "RefusedConnectionsDoNotRelist", Says: "A server that cannot be reached is waited for.", check: func(e *env) { refusals(e, 0, reflector.ResumeRefused) }},
	{Name: "BusyServersDoNotRelist", Says: "429 is waited for.", check: func(e *env) { refusals(e, 429, reflector.ResumeBusy) }},
	{Name: "ServerErrorsDoNotRelist", Says: "5xx is waited for.", check: func(e *env) { refusals(e, 500, reflector.ResumeServer) }},
	{Name: "SilentWatchIsReplaced", Says: "A watch that says nothing for too long is opened again, without a list.",
		reflector: reflector.Options{SilenceTimeout: resyncPeriod}, check: func(e *env) {
			r, _ := e.handle(informer.HandlerOptions{}, nil)
			e.start()
			e.network.await(e, "watches that replace a silent one", func(watches []url.Values) bool { return len(watches) > 2 })
			r.marked("a")
			if resumes := e.informer.ReflectorStats().Resumes; resumes[reflector.ResumeSilent] < 2 {
				e.Errorf("resumes: %v", resumes)
			}
			e.once()
		}},
	{Name: "DeletedInAGapIsDelivered", Says: "A deletion that was missed is delivered when the watch resumes, with the final state.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		obj := e.create("a", "1")
		r.is("add a=1")
		e.network.setDown(true)
		e.change(obj, "2")
		e.remove("a")
		e.network.setDown(false)
		r.until("the end of a", func(calls []call) bool { return len(calls) > 1 && calls[len(calls)-1].String() == "delete a=2" })
		e.once()
	}},
	{Name: "DeletedFinalStateUnknownAfterGap", Says: "A deletion that is no longer in the server's history is found by the list that follows, and delivered with the last state that was seen.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		obj := e.create("a", "1")
		r.is("add a=1")
		e.network.setDown(true)
		e.change(obj, "2")
		e.remove("a")
		expire(e)
		r.is("add a=1", "delete a=1 unknown")
	}},
	{Name: "GapShowsTheNewestState", Says: "After a list, changes that were missed are one update, from the state that was seen last to the newest; unchanged objects are not delivered.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{MaxUnmergedEvents: 1000}, nil)
		e.start()
		obj := e.create("a", "1")
		e.create("same", "1")
		r.is("add a=1", "add same=1")
		e.network.setDown(true)
		for _, value := range []string{"2", "3", "4"} {
			obj = e.change(obj, value)
		}
		expire(e)
		r.is("add a=1", "add same=1", "update a=1>4")
		r.marked("end")
		if calls := about(r.said(), "same"); len(calls) != 1 {
			e.Errorf("what has not changed: %v", calls)
		}
	}},
	{Name: "RecreatedInAGapIsAnotherObject", Says: "When another object took a name while no watch was open, handlers get OnDelete and OnAdd.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("a", "1")
		r.is("add a=1")
		e.network.setDown(true)
		e.remove("a")
		e.create("a", "2")
		expire(e)
		r.is("add a=1", "delete a=1 unknown", "add a=2")
	}},
	{Name: "BookmarkAdvancesResume", Says: "Bookmarks move the resourceVersion that a watch resumes from, though no object of the informer has changed.",
		reflector: reflector.Options{WatchTimeout: 2 * time.Second}, check: func(e *env) {
			quiet := informer.For[*corev1.ConfigMap](e.factory, informer.ListOptions{LabelSelector: "no-object=has-this"})
			e.factory.Start(e.ctx)
			e.must(e.factory.WaitForSync(e.ctx))
			obj := e.create("a", "1")
			e.must(quiet.WaitForResourceVersion(e.ctx, obj.ResourceVersion))
			_, known := e.network.opened()
			e.network.cut()
			var asked url.Values
			e.network.await(e, "the watch of the quiet informer", func(watches []url.Values) bool {
				asked = watches[len(watches)-1]
				return len(watches) > known && asked.Get("labelSelector") == "no-object=has-this"
			})
			from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: asked.Get("resourceVersion")}}
			if !notOlder(from, obj) {
				e.Errorf("resumed from %s, though %s was reached", from.ResourceVersion, obj.ResourceVersion)
			}
			if lists := quiet.ReflectorStats().ListCount(); lists != 1 {
				e.Errorf("%d lists", lists)
			}
		}},
}

// refusals has watches refused three times while an object changes.
func refusals(e *env, code int, reason reflector.ResumeReason) {
	e.Helper()
	r, _ := e.handle(informer.HandlerOptions{}, nil)
	e.start()
	e.network.answer(code, code, code)
	e.network.cut()
	e.create("a", "1")
	r.is("add a=1")
	if resumes := e.informer.ReflectorStats().Resumes; resumes[reason] != 3 {
		e.Errorf("resumes: %v, want 3 because of %q", resumes, reason)
	}
	e.once()
}

// expire lets connections pass again, to a server whose history no longer has
// what was missed.
func expire(e *env) {
	e.network.answer(410)
	e.network.setDown(false)
}
