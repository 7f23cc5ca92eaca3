package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

var listGuarantees = []Guarantee{
	{Name: "list/consistent", Source: sourceCacheRead, check: checkListConsistent,
		Sentence: "A list without a version shows every write acknowledged before it."},
	{Name: "list/any-at-rv-0", Source: sourceConcepts, check: checkListAny,
		Sentence: "A list at version 0 answers at once with some state, with and without NotOlderThan."},
	{Name: "list/limit-ignored-at-rv-0", Source: sourceObserved, check: checkLimitIgnored,
		Sentence: "At version 0 a limit is ignored: everything comes in one answer."},
	{Name: "list/not-older-than", Source: sourceConcepts, check: checkNotOlderThan,
		Sentence: "A list at version N, without a match or with NotOlderThan, is at least as new as N."},
	{Name: "list/waits-for-version", Source: sourceConcepts, check: checkListWaits,
		Sentence: "A list not older than a version that is about to be written waits for it."},
	{Name: "list/not-older-than-pages", Source: sourceConcepts, check: checkNotOlderPages,
		Sentence: "A limit with NotOlderThan is honoured: pages of one state."},
	{Name: "list/limit-means-exact", Source: sourceObserved, check: checkLimitMeansExact,
		Sentence: "A list at version N with a limit and without a match is exactly at N."},
	{Name: "list/exact", Source: sourceSnapshots, check: checkExact,
		Sentence: "Exact shows the state at N: later updates, creations and deletions are not in it."},
	{Name: "list/order", Source: sourceObserved, check: checkListOrder,
		Sentence: "Lists are in the order of the objects' names."},
	{Name: "list/empty-items", Source: sourceObserved, check: checkEmptyItems,
		Sentence: "An empty list has items: [], never null, also in a namespace that does not exist."},
	{Name: "list/items-without-kind", Source: sourceObserved, check: checkItemsWithoutKind,
		Sentence: "A list of built-in objects has kind and apiVersion, its items have none."},
	{Name: "list/same-over-http1", Source: sourceConcepts, check: checkSameOverHTTP1,
		Sentence: "HTTP/1.1 and HTTP/2 give the same list."},
	{Name: "version/decimal-and-growing", Source: sourceVersions, check: checkVersionsGrow,
		Sentence: "Versions are decimal numbers without leading zeros, and every write of a resource gets a greater one."},
}

// consistentRounds is how often a read has to show the write before it.
const consistentRounds = 20

func checkListConsistent(e *Env) {
	e.create("a")
	for i := range consistentRounds {
		content := strconv.Itoa(i)
		made := e.update("a", content)
		seen := e.list("")
		item := seen.find("a")
		if item == nil || item.Data["content"] != content || item.version() != made.version() {
			e.failf("after version %s was acknowledged, a list without a version shows %v", made.version(), item)
		}
		if later(e, made.version(), seen.Metadata.ResourceVersion) {
			e.failf("the list's version %s is older than the write's %s", seen.Metadata.ResourceVersion, made.version())
		}
	}
}

// later says whether a is greater than b; both have to be versions.
func later(e *Env, a, b string) bool {
	x, err := parseVersion(a)
	e.must(err)
	y, err := parseVersion(b)
	e.must(err)
	return x > y
}

func checkListAny(e *Env) {
	e.createSome("p", 2)
	e.list("") // a read of the latest state has brought the cache there
	for _, query := range []string{"resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"} {
		seen := e.list(query)
		if seen.find("p0") == nil || seen.find("p1") == nil {
			e.failf("the list %q has %v", query, seen.names())
		}
	}
}

func checkLimitIgnored(e *Env) {
	e.createSome("p", 5)
	all := e.list("")
	for _, query := range []string{"resourceVersion=0&limit=2", "resourceVersion=0&limit=2&resourceVersionMatch=NotOlderThan"} {
		if seen := e.list(query); len(seen.Items) != len(all.Items) || seen.Metadata.Continue != "" {
			e.failf("the list %q has %d of %d items, continue %q", query, len(seen.Items), len(all.Items), seen.Metadata.Continue)
		}
	}
}

func checkNotOlderThan(e *Env) {
	made := e.create("a")
	for _, query := range []string{"resourceVersion=" + made.version(), "resourceVersionMatch=NotOlderThan&resourceVersion=" + made.version()} {
		seen := e.list(query)
		if seen.find("a") == nil || later(e, made.version(), seen.Metadata.ResourceVersion) {
			e.failf("the list %q is at version %s and has %v", query, seen.Metadata.ResourceVersion, seen.names())
		}
	}
}

func checkListWaits(e *Env) {
	e.create("a")
	next := strconv.FormatUint(e.current()+1, 10)
	written := make(chan error, 1)
	go func() {
		_, err := e.post(e.ctx, e.configMaps(), "b", configMap("b", "1"))
		written <- err
	}()
	seen := e.list("resourceVersionMatch=NotOlderThan&resourceVersion=" + next)
	e.must(<-written)
	if later(e, next, seen.Metadata.ResourceVersion) {
		e.failf("asked for %s or newer, the list is at version %s", next, seen.Metadata.ResourceVersion)
	}
}

func checkNotOlderPages(e *Env) {
	made := e.createSome("p", 5)
	all := e.list("")
	first := e.list("limit=2&resourceVersionMatch=NotOlderThan&resourceVersion=" + made[0].version())
	if len(first.Items) != 2 || first.Metadata.Continue == "" {
		e.failf("limit 2 gave %d items, continue %q", len(first.Items), first.Metadata.Continue)
	}
	if !slices.Equal(all.names(), append(first.names(), e.rest(first, 2)...)) {
		e.failf("the pages are not the list %v", all.names())
	}
}

func checkLimitMeansExact(e *Env) {
	e.create("a")
	at := e.create("b")
	e.create("c")
	seen := e.list("limit=10&resourceVersion=" + at.version())
	if seen.Metadata.ResourceVersion != at.version() || seen.find("c") != nil || seen.find("b") == nil {
		e.failf("asked for %s, the list is at version %s and has %v", at.version(), seen.Metadata.ResourceVersion, seen.names())
	}
}

func checkExact(e *Env) {
	e.create("gone")
	e.create("changed")
	at := e.create("last")
	e.update("changed", "2")
	e.delete("gone")
	e.create("later")
	for _, limit := range []string{"", "&limit=100"} {
		seen := e.list("resourceVersionMatch=Exact&resourceVersion=" + at.version() + limit)
		changed := seen.find("changed")
		switch {
		case seen.Metadata.ResourceVersion != at.version():
			e.failf("asked for exactly %s, the list is at version %s", at.version(), seen.Metadata.ResourceVersion)
		case seen.find("gone") == nil || seen.find("last") == nil || seen.find("later") != nil:
			e.failf("the state at %s was gone, changed and last; the list has %v", at.version(), seen.names())
		case changed == nil || changed.Data["content"] != "1":
			e.failf("the list at %s shows a later state: %v", at.version(), changed)
		}
	}
}

func checkListOrder(e *Env) {
	for _, name := range []string{"c", "a", "b", "a.b", "a-b"} {
		e.create(name)
	}
	if names := e.list("").names(); !slices.IsSorted(names) {
		e.failf("the order is %v", names)
	}
}

func checkEmptyItems(e *Env) {
	e.create("a")
	for _, path := range []string{
		"/api/v1/namespaces/" + e.namespace + "-unknown/configmaps",
		e.configMaps() + "?labelSelector=no-object%3Dhas-this",
	} {
		answer := e.get(path)
		var seen struct{ Items *[]any }
		e.must(answer.decode(&seen))
		if answer.code != http.StatusOK || seen.Items == nil || len(*seen.Items) != 0 {
			e.failf("%s: %s", path, answer)
		}
	}
}

func checkItemsWithoutKind(e *Env) {
	e.create("a")
	seen := e.list("")
	if seen.Kind != "ConfigMapList" || seen.APIVersion != "v1" {
		e.failf("the list is a %s of %s", seen.Kind, seen.APIVersion)
	}
	for _, item := range seen.Items {
		if item.Kind != "" || item.APIVersion != "" {
			e.failf("the item %s says that it is a %q of %q", item.Metadata.Name, item.Kind, item.APIVersion)
		}
	}
}

func checkSameOverHTTP1(e *Env) {
	if !e.server.secure {
		e.skipf("without TLS there is only HTTP/1.1")
	}
	at := e.createSome("p", 3)[2].version()
	path := e.configMaps() + "?resourceVersionMatch=Exact&resourceVersion=" + at
	newer, older := e.get(path), e.do(request{path: path, http1: true})
	if newer.proto != 2 || older.proto != 1 {
		e.failf("asked for HTTP/2 and HTTP/1.1, got HTTP/%d and HTTP/%d", newer.proto, older.proto)
	}
	if newer.code != older.code || !same(newer, older) {
		e.failf("over HTTP/2: %s; over HTTP/1.1: %s", newer, older)
	}
}

func checkVersionsGrow(e *Env) {
	last := uint64(0)
	grown := func(what, version string) {
		n, err := parseVersion(version)
		e.must(err)
		if n <= last {
			e.failf("%s has version %d, the write before it %d", what, n, last)
		}
		last = n
	}
	for i := range 5 {
		name := fmt.Sprintf("o%d", i)
		grown("a creation", e.create(name).version())
		grown("an update", e.update(name, "2").version())
	}
	seen := e.list("")
	if n, err := parseVersion(seen.Metadata.ResourceVersion); err != nil || n < last {
		e.failf("the list's version is %q after a write at %d", seen.Metadata.ResourceVersion, last)
	}
}

var listErrorGuarantees = []Guarantee{
	{Name: "list/match-needs-version", Source: sourceConcepts, check: checkMatchNeedsVersion,
		Sentence: "resourceVersionMatch without a resourceVersion is a 422 Invalid."},
	{Name: "list/exact-at-rv-0-invalid", Source: sourceConcepts,
		Sentence: "Exact at version 0 is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?resourceVersionMatch=Exact&resourceVersion=0"}, wantInvalid)
		}},
	{Name: "list/match-unknown", Source: sourceConcepts,
		Sentence: "An unknown resourceVersionMatch is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?resourceVersionMatch=Sometimes&resourceVersion=1"}, wantInvalid)
		}},
	{Name: "list/version-not-a-number", Source: sourceConcepts,
		Sentence: "A version that is not a number is a 400.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?resourceVersion=yesterday"}, want{code: 400})
		}},
	{Name: "list/send-initial-events-forbidden", Source: sourceStreaming,
		Sentence: "sendInitialEvents on a list is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"}, wantInvalid)
		}},
	{Name: "list/version-too-large", Source: sourceConcepts, check: checkListTooLarge("resourceVersionMatch=NotOlderThan"),
		Sentence: "Not older than a version in the future is a 504 Timeout with the cause ResourceVersionTooLarge and a time to retry after."},
	{Name: "list/exact-too-large", Source: sourceConcepts, check: checkListTooLarge("resourceVersionMatch=Exact"),
		Sentence: "Exactly a version in the future is the same 504."},
	{Name: "list/limit-too-large", Source: sourceConcepts, check: checkListTooLarge("limit=5"),
		Sentence: "A limit with a version in the future is the same 504."},
	{Name: "list/exact-expired", Source: sourceConcepts, check: checkExactExpired,
		Sentence: "Exactly a version whose history is gone is a 410 Expired."},
	{Name: "list/label-selector-malformed", Source: sourceConcepts,
		Sentence: "A label selector that cannot be parsed is a 400.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?labelSelector=a+in+%28"}, wantBad)
		}},
}

func checkMatchNeedsVersion(e *Env) {
	for _, match := range []string{"NotOlderThan", "Exact"} {
		w := wantInvalid
		w.says = "forbidden unless resourceVersion is provided"
		e.refuses(request{path: e.configMaps() + "?resourceVersionMatch=" + match}, w)
	}
}

// tooLargeWithin is how long a server may wait for a version to come.
const tooLargeWithin = 15 * time.Second

func checkListTooLarge(query string) func(*Env) {
	return func(e *Env) {
		e.refusesSoon(request{path: e.configMaps() + "?" + query + "&resourceVersion=" + e.future()}, wantLarge)
	}
}

// refusesSoon demands that a request for a version of the future fails, and how,
// and that the server does not wait longer for the version than it may.
func (e *Env) refusesSoon(r request, w want) {
	within := max(tooLargeWithin, e.limit())
	begin := time.Now()
	e.refuses(r, w)
	if took := time.Since(begin); took > within {
		e.late(within, "the answer took %s", roundTime(took))
	}
}

func checkExactExpired(e *Env) {
	path := e.configMaps() + "?resourceVersionMatch=Exact&resourceVersion=1"
	if answer := e.get(path); answer.code == http.StatusOK && bytes.Contains(answer.body, []byte(`"resourceVersion":"1"`)) {
		e.skipf("%s", reachesBack)
	}
	e.refuses(request{path: path}, wantExpired)
}

// reachesBack is why guarantees about lost history cannot be seen on a server
// that has lost none.
const reachesBack = "the server's history still reaches back to version 1"
