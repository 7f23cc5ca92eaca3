package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var initialGuarantees = []Guarantee{
	{Name: "watch/initial-events-latest", Source: sourceStreaming, check: checkInitial(func(*Env, object) string { return "" }),
		Sentence: "sendInitialEvents=true without a version: the latest state as ADDED events, then the bookmark, then what happens."},
	{Name: "watch/initial-events-any", Source: sourceStreaming, check: checkInitial(func(*Env, object) string { return "0" }),
		Sentence: "sendInitialEvents=true at version 0: some state, then the bookmark, then what happens."},
	{Name: "watch/initial-events-not-older", Source: sourceStreaming, check: checkInitial(func(_ *Env, o object) string { return o.version() }),
		Sentence: "sendInitialEvents=true at version N: a state at least as new, then the bookmark, then what happens."},
	{Name: "watch/initial-events-bookmark", Source: sourceStreaming, check: checkInitialBookmark,
		Sentence: "The bookmark behind the initial events is an empty object of the kind with a version and the annotation k8s.io/initial-events-end."},
	{Name: "watch/initial-bookmark-asked-for", Source: sourceStreaming, check: checkInitialBookmarkAsked,
		Sentence: "Without allowWatchBookmarks there is no bookmark behind the initial events."},
	{Name: "watch/initial-order", Source: sourceObserved, check: checkInitialOrder,
		Sentence: "Initial events are in the order of names, each with its object's own version."},
	{Name: "watch/synthetic-unset", Source: sourceConcepts, check: checkSynthetic(""),
		Sentence: "A plain watch without a version begins with an ADDED for every object."},
	{Name: "watch/synthetic-at-rv-0", Source: sourceConcepts, check: checkSynthetic("0"),
		Sentence: "A plain watch at version 0 begins with an ADDED for every object."},
	{Name: "watch/synthetic-bookmark", Source: sourceStreaming, check: checkSyntheticBookmark,
		Sentence: "A plain watch without a version or at 0, with allowWatchBookmarks, has the bookmark behind its initial events, too."},
}

const streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion="

func checkInitial(version func(*Env, object) string) func(*Env) {
	return func(e *Env) {
		made := e.createSome("p", 3)
		all := e.list("")
		w := e.watch(streaming + version(e, made[2]))
		added, bookmark := w.initial()
		if got := namesOf(added); !slices.Equal(got, all.names()) {
			e.failf("the initial events show %v, the state was %v", got, all.names())
		}
		if later(e, made[2].version(), bookmark.Object.version()) {
			e.failf("the bookmark's version %s is older than the state's %s", bookmark.Object.version(), made[2].version())
		}
		e.update("p0", "2")
		if v := w.expect("MODIFIED", "p0"); !later(e, v.Object.version(), bookmark.Object.version()) {
			e.failf("%s follows the bookmark at %s", v, bookmark.Object.version())
		}
	}
}

func namesOf(events []event) []string {
	var names []string
	for _, v := range events {
		names = append(names, v.Object.Metadata.Name)
	}
	return names
}

func checkInitialBookmark(e *Env) {
	e.create("a")
	_, bookmark := e.watch(streaming).initial()
	e.checkBookmark(bookmark)
	if bookmark.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		e.failf("the annotation is missing: %s", bookmark.Raw)
	}
}

// checkBookmark demands that a bookmark says its version and nothing else.
func (e *Env) checkBookmark(v event) {
	if v.Object.Kind != "ConfigMap" || v.Object.APIVersion != "v1" {
		e.failf("the bookmark is no ConfigMap: %s", v.Raw)
	}
	_, err := parseVersion(v.Object.version())
	e.must(err)
	var fields struct {
		Metadata map[string]any `json:"metadata"`
		Data     map[string]any `json:"data"`
	}
	e.must(json.Unmarshal(v.Raw, &fields))
	for name, value := range fields.Metadata {
		if name != "resourceVersion" && name != "annotations" && value != nil {
			e.failf("the bookmark has metadata.%s: %s", name, v.Raw)
		}
	}
	if len(fields.Data) > 0 {
		e.failf("the bookmark has data: %s", v.Raw)
	}
}

func checkInitialBookmarkAsked(e *Env) {
	count := len(e.list("").Items) + 1
	e.create("a")
	w := e.watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&" + e.brief(""))
	for range count {
		if v := w.next(); v.Type != "ADDED" {
			e.failf("%s among the initial events", v)
		}
	}
	for _, v := range w.remaining() {
		e.failf("%s came unasked", v)
	}
}

func checkInitialOrder(e *Env) {
	own := map[string]string{}
	for _, name := range []string{"c", "a", "b"} {
		own[name] = e.create(name).version()
	}
	own["a"] = e.update("a", "2").version()
	added, _ := e.watch(streaming).initial()
	if names := namesOf(added); !slices.IsSorted(names) || len(names) < 3 {
		e.failf("the initial events come in the order %v", names)
	}
	for _, v := range added {
		if version, ok := own[v.Object.Metadata.Name]; ok && v.Object.version() != version {
			e.failf("%s is shown at version %s, and is at %s", v.Object.Metadata.Name, v.Object.version(), version)
		}
	}
}

func checkSynthetic(version string) func(*Env) {
	return func(e *Env) {
		e.createSome("p", 3)
		all := e.list("").names()
		w := e.watch("resourceVersion=" + version)
		var got []string
		for range all {
			v := w.next()
			if v.Type != "ADDED" {
				e.failf("%s among the initial events", v)
			}
			got = append(got, v.Object.Metadata.Name)
		}
		if !slices.Equal(got, all) {
			e.failf("the initial events show %v, the state was %v", got, all)
		}
		e.delete("p1")
		w.expect("DELETED", "p1")
	}
}

func checkSyntheticBookmark(e *Env) {
	e.create("a")
	for _, version := range []string{"", "0"} {
		w := e.watch("allowWatchBookmarks=true&resourceVersion=" + version)
		_, bookmark := w.initial()
		e.checkBookmark(bookmark)
		w.close()
	}
}

var bookmarkGuarantees = []Guarantee{
	{Name: "bookmark/before-deadline", Source: sourceBookmarks, check: checkBookmarkBeforeDeadline,
		Sentence: "A watch with allowWatchBookmarks gets a bookmark shortly before its deadline, with a version to resume from."},
	{Name: "bookmark/only-if-asked-for", Source: sourceBookmarks, check: checkBookmarkUnasked,
		Sentence: "Without allowWatchBookmarks there are none."},
	{Name: "bookmark/resume", Source: sourceBookmarks, check: checkBookmarkResume,
		Sentence: "A watch from a bookmark's version shows what came after it and nothing before."},
	{Name: "bookmark/every-minute", Source: sourceBookmarks, Slow: true, check: checkBookmarkMinute,
		Sentence: "A quiet watch with allowWatchBookmarks gets a bookmark about once a minute."},
}

func checkBookmarkBeforeDeadline(e *Env) {
	at := e.create("a").version()
	w := e.watch("allowWatchBookmarks=true&" + e.brief(at))
	written := e.update("a", "2").version()
	if took := time.Since(w.opened); took > w.lasts/3 {
		e.end(NotDecided, "a write took %s of the watch's %s", roundTime(took), w.lasts)
	}
	w.expect("MODIFIED", "a")
	events := w.remaining()
	if len(events) == 0 {
		e.late(w.lasts, "the watch ended without a bookmark")
	}
	for _, v := range events {
		if v.Type != "BOOKMARK" || v.initialEnd() || later(e, written, v.Object.version()) {
			e.failf("%s came, not a bookmark at %s or later: %s", v, written, excerpt(v.Raw))
		}
		e.checkBookmark(v)
	}
}

func checkBookmarkUnasked(e *Env) {
	at := e.create("a").version()
	for _, v := range e.watch(e.brief(at)).remaining() {
		e.failf("%s came unasked", v)
	}
}

func checkBookmarkResume(e *Env) {
	at := e.create("a").version()
	w := e.watch("allowWatchBookmarks=true&" + e.brief(at))
	events := w.remaining()
	if len(events) == 0 {
		e.late(w.lasts, "the watch ended without a bookmark")
	}
	last := events[len(events)-1].Object.version()
	e.create("b")
	e.watch("resourceVersion="+last).expect("ADDED", "b")
}

func checkBookmarkMinute(e *Env) {
	at := e.create("a").version()
	w := e.watch("allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=" + at)
	const within = 100 * time.Second
	v, err := w.await(within)
	switch {
	case errors.Is(err, errNothing):
		e.late(within, "no bookmark within %s", within)
	case errors.Is(err, io.EOF):
		e.failf("the watch ended before its time")
	case err != nil:
		e.failf("a bookmark was expected: %v", err)
	case v.Type != "BOOKMARK":
		e.failf("%s came, not a bookmark", v)
	}
}
