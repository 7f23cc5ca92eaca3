package conformance

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/server"
)

// without asks the server without some parameters.
func without(names ...string) *fault {
	return &fault{request: func(_ *http.Request, query url.Values) {
		for _, name := range names {
			query.Del(name)
		}
	}}
}

// with asks the server with other parameters, where a condition on the
// original ones holds: "name" is there, or "name=value".
func with(condition string, pairs ...string) *fault {
	return &fault{request: func(_ *http.Request, query url.Values) {
		name, value, exact := strings.Cut(condition, "=")
		if condition != "" && (!query.Has(name) || exact && query.Get(name) != value) {
			return
		}
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			query.Set(name, value)
		}
	}}
}

// watching is with, for watches.
func watching(pairs ...string) *fault { return with("watch=true", pairs...) }

// accepting asks in another form, for requests in a form that has a part.
func accepting(part, form string) *fault {
	return &fault{request: func(r *http.Request, _ url.Values) {
		if strings.Contains(r.Header.Get("Accept"), part) {
			r.Header.Set("Accept", form)
		}
	}}
}

// editing changes every answer in JSON.
func editing(change func(body doc)) *fault {
	return &fault{answer: func(_ *http.Request, a *answer) { a.edit(change) }}
}

// editingStatus changes failures.
func editingStatus(change func(status doc)) *fault {
	return editing(func(body doc) {
		if body["kind"] == "Status" {
			change(body)
		}
	})
}

// answering changes the code where a condition on the URL holds.
func answering(part string, code int) *fault {
	return &fault{answer: func(r *http.Request, a *answer) {
		if strings.Contains(r.URL.RequestURI(), part) {
			a.code = code
		}
	}}
}

// patching changes the answers to patches.
func patching(change func(a *answer)) *fault {
	return &fault{answer: func(r *http.Request, a *answer) {
		if r.Method == http.MethodPatch {
			change(a)
		}
	}}
}

// stale answers every GET of a path as the first one.
func stale() *fault {
	var mu sync.Mutex
	first := map[string][]byte{}
	return &fault{answer: func(r *http.Request, a *answer) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet || a.code != http.StatusOK {
			return
		}
		if first[r.URL.Path] == nil {
			first[r.URL.Path] = a.body
		}
		a.body = first[r.URL.Path]
	}}
}

// each changes events of a type ("" is any) and keeps them.
func each(kind string, change func(v, object doc)) *fault {
	return &fault{event: func(_ *http.Request, _ int, v doc) ([]doc, bool) {
		if kind == "" || v["type"] == kind {
			change(v, at(v, "object"))
		}
		return []doc{v}, false
	}}
}

// dropping leaves out events of a type.
func dropping(kind string) *fault {
	return &fault{event: func(_ *http.Request, _ int, v doc) ([]doc, bool) {
		if v["type"] == kind {
			return nil, false
		}
		return []doc{v}, false
	}}
}

// nth changes what becomes of one event of every stream.
func nth(at int, change func(v doc) []doc) *fault {
	return &fault{event: func(_ *http.Request, n int, v doc) ([]doc, bool) {
		if n == at {
			return change(v), false
		}
		return []doc{v}, false
	}}
}

// deletingOlder shows, where an object is deleted, the first state of it that was
// seen in any stream.
func deletingOlder() *fault {
	var first sync.Map // of an object's uid
	return &fault{event: func(_ *http.Request, _ int, v doc) ([]doc, bool) {
		object := at(v, "object")
		if v["type"] == "BOOKMARK" || object["data"] == nil {
			return []doc{v}, false
		}
		older, _ := first.LoadOrStore(at(object, "metadata")["uid"], object["data"])
		if v["type"] == "DELETED" {
			object["data"] = older
		}
		return []doc{v}, false
	}}
}

// swapping exchanges two live events that follow each other in a stream.
func swapping() *fault {
	var held sync.Map // of the stream's request
	return &fault{event: func(r *http.Request, n int, v doc) ([]doc, bool) {
		if before, ok := held.LoadAndDelete(r); ok {
			return []doc{v, before.(doc)}, false
		}
		if n%10 == 5 && v["type"] != "BOOKMARK" {
			held.Store(r, v)
			return nil, false
		}
		return []doc{v}, false
	}}
}

func setVersion(version string) func(v, object doc) {
	return func(_, object doc) { at(object, "metadata")["resourceVersion"] = version }
}

// shiftVersion adds to an event's version.
func shiftVersion(by int) func(v, object doc) {
	return func(_, object doc) {
		meta := at(object, "metadata")
		n, err := strconv.Atoi(fmt.Sprint(meta["resourceVersion"]))
		if err == nil {
			meta["resourceVersion"] = strconv.Itoa(n + by)
		}
	}
}

func setType(kind string) func(v, object doc) { return func(v, _ doc) { v["type"] = kind } }

func setContent(_, object doc) { at(object, "data")["content"] = "something else" }

func dropAnnotation(_, object doc) { delete(at(object, "metadata"), "annotations") }

func dropDetails(name string) func(doc) {
	return func(status doc) { delete(at(status, "details"), name) }
}

// onward rewrites continue tokens on their way to the server.
func onward(change func(*token)) *fault {
	return &fault{request: func(_ *http.Request, query url.Values) {
		if t, err := decodeToken(query.Get("continue")); err == nil {
			change(&t)
			query.Set("continue", encodeToken(t))
		}
	}}
}

func items(body doc, change func([]any) any) {
	if list, ok := body["items"].([]any); ok {
		body["items"] = change(list)
	}
}

// brokenRow says which guarantee has to catch a fault.
type brokenRow struct {
	name, guarantee string
	fault           func() *fault
}

// broken has a fault for every guarantee.
var broken = []brokenRow{
	{"reads lag behind", "list/consistent", stale},
	{"version 0 is refused", "list/any-at-rv-0", func() *fault { return answering("resourceVersion=0", 504) }},
	{"the limit counts at version 0", "list/limit-ignored-at-rv-0", func() *fault { return with("resourceVersion=0", "resourceVersion=", "resourceVersionMatch=") }},
	{"lists are old", "list/not-older-than", func() *fault {
		return editing(func(body doc) {
			if body["kind"] == "ConfigMapList" {
				at(body, "metadata")["resourceVersion"] = "1"
			}
		})
	}},
	{"lists do not wait", "list/waits-for-version", func() *fault {
		return editing(func(body doc) {
			if body["kind"] == "ConfigMapList" {
				at(body, "metadata")["resourceVersion"] = "2"
			}
		})
	}},
	{"no continue token", "list/not-older-than-pages", func() *fault { return editing(func(body doc) { delete(at(body, "metadata"), "continue") }) }},
	{"a limit means not older than", "list/limit-means-exact", func() *fault { return with("limit", "resourceVersionMatch=NotOlderThan") }},
	{"exact means not older than", "list/exact", func() *fault { return with("resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan") }},
	{"backwards", "list/order", func() *fault {
		return editing(func(body doc) { items(body, func(list []any) any { slices.Reverse(list); return list }) })
	}},
	{"items: null", "list/empty-items", func() *fault {
		return editing(func(body doc) {
			items(body, func(list []any) any {
				if len(list) == 0 {
					return nil
				}
				return list
			})
		})
	}},
	{"items with kind", "list/items-without-kind", func() *fault {
		return editing(func(body doc) {
			items(body, func(list []any) any {
				for _, item := range list {
					item.(doc)["kind"] = "ConfigMap"
				}
				return list
			})
		})
	}},
	{"HTTP/1.1 is different", "list/same-over-http1", func() *fault {
		return &fault{answer: func(r *http.Request, a *answer) {
			if r.ProtoMajor == 1 {
				a.edit(func(body doc) { items(body, func(list []any) any { return list[:1] }) })
			}
		}}
	}},
	{"a leading zero", "version/decimal-and-growing", func() *fault {
		return editing(func(body doc) {
			if v, ok := at(body, "metadata")["resourceVersion"].(string); ok {
				at(body, "metadata")["resourceVersion"] = "0" + v
			}
		})
	}},
	{"a match alone is ignored", "list/match-needs-version", func() *fault { return without("resourceVersionMatch") }},
	{"exact at 0 is anything", "list/exact-at-rv-0-invalid", func() *fault { return without("resourceVersionMatch") }},
	{"unknown matches are ignored", "list/match-unknown", func() *fault { return without("resourceVersionMatch") }},
	{"odd versions are ignored", "list/version-not-a-number", func() *fault { return without("resourceVersion") }},
	{"initial events of a list", "list/send-initial-events-forbidden", func() *fault { return without("sendInitialEvents", "resourceVersionMatch") }},
	{"no cause", "list/version-too-large", func() *fault { return editingStatus(dropDetails("causes")) }},
	{"no time to retry after", "list/exact-too-large", func() *fault { return editingStatus(dropDetails("retryAfterSeconds")) }},
	{"the future is now", "list/limit-too-large", func() *fault { return without("resourceVersion") }},
	{"gone, not expired", "list/exact-expired", func() *fault { return editingStatus(func(s doc) { s["reason"] = "Gone" }) }},
	{"broken selectors are ignored", "list/label-selector-malformed", func() *fault { return without("labelSelector") }},

	{"pages of several states", "pages/one-state", func() *fault { return onward(func(t *token) { t.Revision = -1 }) }},
	{"miscounted", "pages/remaining-item-count", func() *fault {
		return editing(func(body doc) {
			if n, ok := at(body, "metadata")["remainingItemCount"].(float64); ok {
				at(body, "metadata")["remainingItemCount"] = n + 1
			}
		})
	}},
	{"opaque tokens", "pages/token-form", func() *fault {
		return editing(func(body doc) {
			if s, ok := at(body, "metadata")["continue"].(string); ok {
				at(body, "metadata")["continue"] = base64.StdEncoding.EncodeToString([]byte(s))
			}
		})
	}},
	{"bad tokens are ignored", "pages/token-guarded", func() *fault { return without("continue") }},
	{"a token with a match", "pages/token-with-match-invalid", func() *fault { return without("resourceVersionMatch", "resourceVersion") }},
	{"a token with a version", "pages/token-with-version-bad", func() *fault { return without("resourceVersion") }},
	{"a token at 0 begins anew", "pages/token-at-rv-0", func() *fault { return without("continue") }},
	{"no fresh token", "pages/token-expired", func() *fault { return editingStatus(func(s doc) { delete(at(s, "metadata"), "continue") }) }},
	{"going on begins anew", "pages/token-inconsistent", func() *fault { return without("continue") }},

	{"labels are ignored", "select/labels", func() *fault { return without("labelSelector") }},
	{"names are ignored", "select/field-name", func() *fault { return without("fieldSelector") }},
	{"fields are ignored", "select/field-of-kind", func() *fault { return without("fieldSelector") }},
	{"unknown fields are ignored", "select/field-unknown", func() *fault { return without("fieldSelector") }},

	{"reads lag behind", "get/consistent", stale},
	{"version 0 is refused", "get/any-at-rv-0", func() *fault { return answering("resourceVersion=0", 504) }},
	{"reads lag behind", "get/not-older-than", stale},
	{"the future is now", "get/version-too-large", func() *fault { return without("resourceVersion") }},
	{"odd versions are ignored", "get/version-not-a-number", func() *fault { return without("resourceVersion") }},
	{"an anonymous 404", "get/not-found", func() *fault { return editingStatus(dropDetails("name")) }},

	{"watches begin at 0", "watch/after-version", func() *fault { return watching("resourceVersion=0", "sendInitialEvents=", "resourceVersionMatch=") }},
	{"initial events unasked", "watch/from-latest", func() *fault { return watching("sendInitialEvents=true") }},
	{"initial events unasked", "watch/from-any", func() *fault { return watching("sendInitialEvents=true") }},
	{"the limit counts", "watch/limit-ignored", func() *fault {
		return &fault{event: func(_ *http.Request, _ int, v doc) ([]doc, bool) { return []doc{v}, true }}
	}},
	{"no timeout", "watch/timeout-seconds", func() *fault { return without("timeoutSeconds") }},
	{"headers with the first event", "watch/headers-at-once", func() *fault { return &fault{lateHeaders: true} }},
	{"the future is now", "watch/future-silent", func() *fault { return watching("resourceVersion=0", "sendInitialEvents=", "resourceVersionMatch=") }},
	{"silence over HTTP/1.1", "watch/http1", func() *fault {
		return &fault{event: func(r *http.Request, _ int, v doc) ([]doc, bool) {
			if r.ProtoMajor == 1 {
				return nil, false
			}
			return []doc{v}, false
		}}
	}},
	{"names are ignored", "watch/one-object", func() *fault {
		return &fault{request: func(r *http.Request, query url.Values) {
			if isWatch(r) {
				r.URL.Path = strings.TrimSuffix(r.URL.Path, "/a")
				query.Del("fieldSelector")
			}
		}}
	}},
	{"one namespace only", "watch/all-namespaces", func() *fault {
		return &fault{event: func(r *http.Request, _ int, v doc) ([]doc, bool) {
			if r.URL.Path == "/api/v1/configmaps" {
				return nil, false
			}
			return []doc{v}, false
		}}
	}},
	{"no old paths", "watch/legacy-path", func() *fault {
		return &fault{request: func(r *http.Request, _ url.Values) {
			r.URL.Path = strings.Replace(r.URL.Path, "/api/v1/watch/", "/api/v1/nothing/", 1)
		}}
	}},

	{"created, but not said", "apply/creates", func() *fault { return patching(func(a *answer) { a.code = http.StatusOK }) }},
	{"every apply is a write", "apply/same-again", func() *fault {
		return patching(func(a *answer) {
			if a.code == http.StatusOK {
				a.edit(func(body doc) { at(body, "metadata")["resourceVersion"] = "9" })
			}
		})
	}},
	{"conflicts without causes", "apply/conflict", func() *fault { return editingStatus(dropDetails("causes")) }},
	{"force is ignored", "apply/force", func() *fault { return without("force") }},
	{"all writers are one manager", "apply/left-out", func() *fault { return with("fieldManager", "fieldManager=all") }},
	{"there is always a manager", "apply/needs-manager", func() *fault { return with("fieldManager", "fieldManager=all") }},
	{"no manager owns anything", "apply/updates-own", func() *fault {
		return editing(func(body doc) { delete(at(body, "metadata"), "managedFields") })
	}},

	{"a match alone is ignored", "watch/match-needs-initial-events", func() *fault { return without("resourceVersionMatch") }},
	{"a match is assumed", "watch/initial-events-need-match", func() *fault { return watching("resourceVersionMatch=NotOlderThan") }},
	{"exact means not older than", "watch/exact-invalid", func() *fault { return watching("resourceVersionMatch=NotOlderThan") }},
	{"odd versions are ignored", "watch/version-not-a-number", func() *fault { return without("resourceVersion") }},
	{"broken selectors are ignored", "watch/selector-malformed", func() *fault { return without("labelSelector") }},
	{"the path wins", "watch/name-contradiction", func() *fault { return without("fieldSelector") }},
	{"HTTP 410 instead of an event", "watch/expired-in-stream", func() *fault { return &fault{plainErrors: true} }},
	{"what is old is gone", "watch/coalesced-history", func() *fault {
		return each("ADDED", func(v, object doc) {
			if at(object, "metadata")["name"] == "b" {
				v["type"] = "DELETED"
			}
		})
	}},
	{"no cause in the stream", "watch/future-with-initial-events", func() *fault {
		return each("ERROR", func(_, object doc) { delete(at(object, "details"), "causes") })
	}},

	{"an object is left out", "watch/initial-events-latest", func() *fault { return nth(1, func(doc) []doc { return nil }) }},
	{"the bookmark never comes", "watch/initial-events-any", func() *fault { return dropping("BOOKMARK") }},
	{"the bookmark is old", "watch/initial-events-not-older", func() *fault { return each("BOOKMARK", setVersion("1")) }},
	{"the annotation is lost", "watch/initial-events-bookmark", func() *fault { return each("BOOKMARK", dropAnnotation) }},
	{"bookmarks unasked", "watch/initial-bookmark-asked-for", func() *fault { return watching("allowWatchBookmarks=true") }},
	{"initial events have the state's version", "watch/initial-order", func() *fault { return each("ADDED", setVersion("999999")) }},
	{"nothing synthetic", "watch/synthetic-unset", func() *fault { return dropping("ADDED") }},
	{"nothing synthetic", "watch/synthetic-at-rv-0", func() *fault { return dropping("ADDED") }},
	{"the annotation is lost", "watch/synthetic-bookmark", func() *fault { return each("BOOKMARK", dropAnnotation) }},

	{"no bookmarks", "bookmark/before-deadline", func() *fault { return dropping("BOOKMARK") }},
	{"watches end without any", "bookmark/every-minute", func() *fault { return watching("allowWatchBookmarks=false", "timeoutSeconds=2") }}, //passes: a server whose watches end like that
	{"bookmarks unasked", "bookmark/only-if-asked-for", func() *fault { return watching("allowWatchBookmarks=true") }},
	{"bookmarks of the future", "bookmark/resume", func() *fault { return each("BOOKMARK", shiftVersion(far)) }},

	{"entering is a change", "select/enter-is-added", func() *fault { return each("ADDED", setType("MODIFIED")) }},
	{"a change is an addition", "select/stay-is-modified", func() *fault { return each("MODIFIED", setType("ADDED")) }},
	{"leaving shows something else", "select/leave-is-deleted", func() *fault { return each("DELETED", setContent) }},
	{"deletions have an old version", "select/deleted", func() *fault { return each("DELETED", setVersion("1")) }},
	{"labels are ignored", "select/outside-is-silent", func() *fault { return without("labelSelector") }},
	{"leaving has the old version", "select/field-transition", func() *fault { return each("DELETED", shiftVersion(-1)) }},

	{"deletions show an older state", "delete/event", deletingOlder},
	{"deletions forget the mark", "delete/pod-events", func() *fault {
		return each("DELETED", func(_, object doc) { delete(at(object, "metadata"), "deletionTimestamp") })
	}},
	{"deletions show an older state", "stream/faithful", deletingOlder},
	{"deletions have an old version", "delete/event", func() *fault { return each("DELETED", setVersion("1")) }},
	{"no details", "delete/answer", func() *fault { return editingStatus(func(s doc) { delete(s, "details") }) }},
	{"nothing before the end", "delete/pod-events", func() *fault { return dropping("MODIFIED") }},
	{"all at once", "delete/collection-versions", func() *fault { return each("DELETED", setVersion("999999")) }},

	{"anything is acceptable", "form/not-acceptable", func() *fault { return accepting("application/", "application/json") }},
	{"no envelope", "form/protobuf", func() *fault {
		return &fault{answer: func(_ *http.Request, a *answer) { a.body = bytes.TrimPrefix(a.body, envelopePrefix) }}
	}},
	{"JSON for YAML", "form/yaml", func() *fault { return accepting("yaml", "application/json") }},
	{"no tag", "form/cbor", func() *fault {
		return &fault{answer: func(_ *http.Request, a *answer) { a.body = bytes.TrimPrefix(a.body, cborTag) }}
	}},
	{"a column is missing", "form/table", func() *fault {
		return editing(func(body doc) {
			if columns, ok := body["columnDefinitions"].([]any); ok {
				body["columnDefinitions"] = columns[1:]
			}
		})
	}},
	{"always metadata", "form/table-include", func() *fault { return without("includeObject") }},
	{"always whole", "form/metadata", func() *fault { return accepting("PartialObjectMetadata", "application/json") }},
	{"always whole", "form/metadata-protobuf", func() *fault { return accepting("PartialObjectMetadata", protobuf) }},
	{"never compressed", "form/gzip", func() *fault {
		return &fault{request: func(r *http.Request, _ url.Values) { r.Header.Del("Accept-Encoding") }}
	}},

	{"a wrong type", "watch/json-framing", func() *fault {
		return &fault{header: func(h http.Header) { h.Set("Content-Type", "text/plain") }}
	}},
	{"frames in envelopes", "watch/protobuf-framing", func() *fault {
		return &fault{raw: func(b []byte) []byte { return append([]byte{0, 0, 0, 4}, append(bytes.Clone(envelopePrefix), b...)...) }}
	}},
	{"a wrong type", "watch/cbor-framing", func() *fault {
		return &fault{header: func(h http.Header) { h.Set("Content-Type", "application/cbor") }}
	}},
	{"columns each time", "watch/table", func() *fault {
		return each("", func(_, object doc) { object["columnDefinitions"] = []doc{{"name": "Name", "type": "string"}} })
	}},
	{"the annotation is lost", "watch/table-initial-bookmark", func() *fault {
		return each("BOOKMARK", func(_, object doc) {
			for _, row := range object["rows"].([]any) {
				dropAnnotation(nil, at(row.(doc), "object"))
			}
		})
	}},
	{"deletions come whole", "watch/metadata", func() *fault {
		return each("DELETED", func(_, object doc) { object["kind"], object["apiVersion"] = "ConfigMap", "v1" })
	}},
	{"anything is acceptable", "watch/not-acceptable", func() *fault { return accepting("application/", "application/json") }},

	{"the last one wins", "write/conflict", func() *fault {
		return &fault{request: func(r *http.Request, _ url.Values) {
			if r.Method == http.MethodPut {
				body, _ := io.ReadAll(r.Body)
				body = regexp.MustCompile(`"resourceVersion":"\d+",`).ReplaceAll(body, nil)
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
		}}
	}},
	{"a wrong reason", "write/already-exists", func() *fault { return editingStatus(func(s doc) { s["reason"] = "Conflict" }) }},
	{"dryRun is ignored", "write/dry-run-unknown", func() *fault { return without("dryRun") }},
	{"dryRun is ignored", "write/dry-run", func() *fault { return without("dryRun") }},
	{"fieldValidation is ignored", "write/field-validation-unknown", func() *fault { return without("fieldValidation") }},
	{"a wrong code", "write/json-patch-test", func() *fault { return editingStatus(func(s doc) { s["code"] = 409 }) }},

	{"nothing preferred", "discovery/versions", func() *fault {
		return editing(func(body doc) {
			for _, group := range slicesOf(body, "groups") {
				delete(group, "preferredVersion")
			}
		})
	}},
	{"nothing to watch", "discovery/resources", func() *fault {
		return editing(func(body doc) {
			for _, r := range slicesOf(body, "resources") {
				r["verbs"] = []string{"get", "list"}
			}
		})
	}},
	{"a plain type", "discovery/aggregated", func() *fault {
		return &fault{answer: func(_ *http.Request, a *answer) { a.header.Set("Content-Type", "application/json") }}
	}},
	{"both halves are the first", "shard/list", func() *fault { return sameShard(false) }},
	{"both halves are the first", "shard/watch", func() *fault { return sameShard(true) }},

	{"neighbours change places", "stream/ordered", swapping},
	{"an event comes twice", "stream/unique", func() *fault { return nth(3, func(v doc) []doc { return []doc{v, v} }) }},
	{"an event is dropped", "stream/reliable", func() *fault { return nth(3, func(doc) []doc { return nil }) }},
	{"streams lose their first event", "stream/resumable", func() *fault { return nth(0, func(doc) []doc { return nil }) }},
	{"lists lack an object", "stream/atomic", func() *fault {
		return editing(func(body doc) {
			items(body, func(list []any) any {
				return slices.DeleteFunc(list, func(item any) bool { return at(item.(doc), "metadata")["name"] == "w0-1" })
			})
		})
	}},
	{"bookmarks run ahead", "stream/bookmarkable", func() *fault { return each("BOOKMARK", shiftVersion(15)) }},
	{"another content", "stream/faithful", func() *fault { return each("MODIFIED", setContent) }},
	{"leaving shows something else", "stream/filtered", func() *fault { return each("DELETED", setContent) }},
}

func slicesOf(body doc, name string) []doc {
	var all []doc
	list, _ := body[name].([]any)
	for _, item := range list {
		all = append(all, item.(doc))
	}
	return all
}

func sameShard(watches bool) *fault {
	first, _ := url.QueryUnescape(halves[0])
	return &fault{request: func(r *http.Request, query url.Values) {
		if query.Has("shardSelector") && isWatch(r) == watches {
			query.Set("shardSelector", first)
		}
	}}
}

// brokenAtATime is how many broken servers are checked at once. Most of what
// the checks do is wait.
const brokenAtATime = 48

// TestBrokenServersAreCaught: whatever breaks a guarantee is caught under its
// name; and a proxy that breaks nothing is not. Guarantees that take a minute
// are left out of a short test.
func TestBrokenServersAreCaught(t *testing.T) {
	t.Parallel()
	s := startAged(t, server.Config{DataDir: t.TempDir()})
	exact := startAged(t, server.Config{DataDir: t.TempDir(), ExactHistory: true})
	report, err := Run(t.Context(), new(fault).breaks(t, s), Options{})
	if err != nil || report.Count(Fail)+report.Count(NotDecided) > 0 {
		var b bytes.Buffer
		report.WriteTable(&b)
		t.Fatalf("a proxy that breaks nothing: %v\n%s", err, &b)
	}
	var rows []brokenRow
	for _, row := range broken {
		if !testing.Short() || !isSlow(row.guarantee) {
			rows = append(rows, row)
		}
	}
	results := make([]Result, len(rows))
	check := func(i int) error {
		victim := s
		if rows[i].guarantee == "watch/expired-in-stream" {
			victim = exact
		}
		only := regexp.MustCompile("^" + regexp.QuoteMeta(rows[i].guarantee) + "$")
		// What a broken server leaves behind is its own fault.
		report, err := Run(t.Context(), rows[i].fault().breaks(t, victim), Options{Run: only, Slow: true})
		if report == nil {
			return fmt.Errorf("%s: %w", rows[i].guarantee, err)
		}
		results[i] = report.Results[0]
		return nil
	}
	var group errgroup.Group
	group.SetLimit(brokenAtATime)
	for i := range slices.Backward(rows) { // those of the streams, which take longest, are the last
		group.Go(func() error { return check(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	// So many at once may have been too much for this machine to decide all of them.
	for i := range rows {
		if results[i].Verdict != NotDecided {
			continue
		}
		if err := check(i); err != nil {
			t.Fatal(err)
		}
	}
	for i, row := range rows {
		t.Run(row.guarantee+": "+row.name, func(t *testing.T) {
			if result := results[i]; result.Verdict != Fail {
				t.Errorf("the verdict is %s: %s", result.Verdict, result.Reason)
			} else {
				t.Log(result.Reason)
			}
		})
	}
}

// TestBookmarksAtAnyTime: a server may send bookmarks whenever it wants, to a watch that has asked for them.
func TestBookmarksAtAnyTime(t *testing.T) {
	t.Parallel()
	s := startAged(t, server.Config{DataDir: t.TempDir()})
	report, err := Run(t.Context(), talkative().breaks(t, s), Options{})
	if err != nil || report.Count(Fail)+report.Count(NotDecided) > 0 {
		var b bytes.Buffer
		report.WriteTable(&b)
		t.Errorf("a proxy that adds bookmarks: %v\n%s", err, &b)
	}
}

// talkative sends a bookmark of the version that a stream has reached before each event, once the initial events are over.
func talkative() *fault {
	var reached sync.Map // by request: the last event
	return &fault{event: func(r *http.Request, _ int, v doc) (sent []doc, stop bool) {
		query, metadata := r.URL.Query(), at(v, "object", "metadata")
		if query.Get("allowWatchBookmarks") != "true" || v["type"] == "ERROR" {
			return []doc{v}, false
		}
		if last, ok := reached.Load(r); ok {
			before := last.(doc)
			sent = append(sent, doc{"type": "BOOKMARK", "object": doc{"kind": at(before, "object")["kind"], "apiVersion": at(before, "object")["apiVersion"],
				"metadata": doc{"resourceVersion": at(before, "object", "metadata")["resourceVersion"], "creationTimestamp": nil}}})
		}
		annotations, _ := metadata["annotations"].(doc)
		from := query.Get("resourceVersion")
		if annotations["k8s.io/initial-events-end"] == "true" || query.Get("sendInitialEvents") != "true" && from != "" && from != "0" || len(sent) > 0 {
			reached.Store(r, v)
		}
		return append(sent, v), false
	}}
}

func isSlow(guarantee string) bool {
	return slices.ContainsFunc(Guarantees(), func(g Guarantee) bool { return g.Name == guarantee && g.Slow })
}

// TestEveryGuaranteeCanFail: none is without a fault that it catches.
func TestEveryGuaranteeCanFail(t *testing.T) {
	t.Parallel()
	for _, g := range Guarantees() {
		caught := slices.ContainsFunc(broken, func(row brokenRow) bool { return row.guarantee == g.Name })
		if !caught {
			t.Errorf("nothing breaks %s", g.Name)
		}
	}
}
