package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var pageGuarantees = []Guarantee{
	{Name: "pages/one-state", Source: sourceChunking, check: checkPagesOneState,
		Sentence: "All pages of a list are of one state, whatever is written meanwhile, and have its version."},
	{Name: "pages/remaining-item-count", Source: sourceChunking, check: checkRemaining,
		Sentence: "remainingItemCount counts what follows a page; with a selector it is absent."},
	{Name: "pages/token-form", Source: sourceObserved, check: checkTokenForm,
		Sentence: "A continue token is unpadded URL-safe base64 of JSON with v, rv and start."},
	{Name: "pages/token-guarded", Source: sourceObserved, check: checkTokenGuarded,
		Sentence: "Tokens that are garbage, or that lead out of the collection, are a 400."},
	{Name: "pages/token-with-match-invalid", Source: sourceConcepts, check: checkTokenWithMatch,
		Sentence: "A continue token together with a resourceVersionMatch is a 422 Invalid."},
	{Name: "pages/token-with-version-bad", Source: sourceConcepts, check: checkTokenWithVersion,
		Sentence: "A continue token together with a version other than 0 is a 400."},
	{Name: "pages/token-at-rv-0", Source: sourceObserved, check: checkTokenAtZero,
		Sentence: "A continue token with version 0 goes on, and the limit is ignored."},
	{Name: "pages/token-expired", Source: sourceChunking, check: checkTokenExpired,
		Sentence: "A token whose state is gone is a 410 Expired that carries a fresh token for going on at the latest state."},
	{Name: "pages/token-inconsistent", Source: sourceChunking, check: checkTokenInconsistent,
		Sentence: "A token with rv -1 goes on behind its start at the latest state."},
}

// rest follows the continue tokens behind a page and returns the names.
func (e *Env) rest(page *list, limit int) (names []string) {
	for range 100 {
		if page.Metadata.Continue == "" {
			return names
		}
		version := page.Metadata.ResourceVersion
		page = e.list(fmt.Sprintf("limit=%d&continue=%s", limit, url.QueryEscape(page.Metadata.Continue)))
		if page.Metadata.ResourceVersion != version {
			e.failf("a page is at version %s, the one before it at %s", page.Metadata.ResourceVersion, version)
		}
		if len(page.Items) > limit {
			e.failf("a page of %d has %d items", limit, len(page.Items))
		}
		names = append(names, page.names()...)
	}
	e.failf("the pages do not end")
	return nil
}

func checkPagesOneState(e *Env) {
	e.createSome("p", 7)
	all := e.list("")
	first := e.list("limit=2")
	if len(first.Items) != 2 {
		e.failf("limit 2 gave %d items", len(first.Items))
	}
	e.create("p00")
	e.delete("p5")
	e.create("p55")
	if got := append(first.names(), e.rest(first, 2)...); !slices.Equal(got, all.names()) {
		e.failf("the state was %v, its pages have %v", all.names(), got)
	}
}

func checkRemaining(e *Env) {
	e.createSome("p", 5, "set=all")
	all := int64(len(e.list("").Items))
	first := e.list("limit=2")
	if r := first.Metadata.RemainingItemCount; r == nil || *r != all-2 {
		e.failf("2 of %d items are on the page, remainingItemCount is %s", all, show(r))
	}
	for _, selector := range []string{"labelSelector=set%3Dall", "fieldSelector=metadata.name%21%3Dp4"} {
		page := e.list("limit=2&" + selector)
		if r := page.Metadata.RemainingItemCount; r != nil || page.Metadata.Continue == "" {
			e.failf("with %s: continue %q, remainingItemCount %s", selector, page.Metadata.Continue, show(r))
		}
	}
	if r := e.list("").Metadata.RemainingItemCount; r != nil {
		e.failf("nothing remains of a whole list, remainingItemCount is %s", show(r))
	}
}

func show(n *int64) string {
	if n == nil {
		return "absent"
	}
	return fmt.Sprint(*n)
}

type token struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

func encodeToken(t token) string {
	encoded, _ := json.Marshal(t) // strings and numbers always encode
	return base64.RawURLEncoding.EncodeToString(encoded)
}

func decodeToken(s string) (t token, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return t, fmt.Errorf("the token %q: %w", s, err)
	}
	if err := json.Unmarshal(plain, &t); err != nil {
		return t, fmt.Errorf("the token %q: %w", plain, err)
	}
	return t, nil
}

// pageToken returns the token behind the first page of some objects.
func (e *Env) pageToken() string {
	e.createSome("p", 5)
	page := e.list("limit=2")
	if page.Metadata.Continue == "" {
		e.failf("a page of 2 of 5 objects has no continue token")
	}
	return page.Metadata.Continue
}

func checkTokenForm(e *Env) {
	e.createSome("p", 3)
	page := e.list("limit=2")
	t, err := decodeToken(page.Metadata.Continue)
	e.must(err)
	// Servers differ in whether the start is relative to a prefix that ends
	// with a slash.
	start := strings.TrimPrefix(t.Start, "/")
	last := page.names()[len(page.Items)-1]
	if t.Version != "meta.k8s.io/v1" || fmt.Sprint(t.Revision) != page.Metadata.ResourceVersion || start != last+"\x00" {
		e.failf("the token behind %s of version %s is %+v", last, page.Metadata.ResourceVersion, t)
	}
}

func checkTokenGuarded(e *Env) {
	current := int64(e.current())
	for _, bad := range []string{
		"garbage", base64.RawURLEncoding.EncodeToString([]byte("{}")),
		encodeToken(token{"meta.k8s.io/v1", current, "../../secrets/x\x00"}),
		encodeToken(token{"meta.k8s.io/v0", current, "a\x00"}),
	} {
		e.refuses(request{path: e.configMaps() + "?limit=2&continue=" + bad}, want{code: 400})
	}
}

func checkTokenWithMatch(e *Env) {
	t := e.pageToken()
	for _, version := range []string{"0", "5"} {
		w := wantInvalid
		w.says = "forbidden when continue is provided"
		e.refuses(request{path: e.configMaps() + "?limit=2&resourceVersionMatch=NotOlderThan&resourceVersion=" + version + "&continue=" + t}, w)
	}
}

func checkTokenWithVersion(e *Env) {
	t := e.pageToken()
	w := want{code: 400, says: "specifying resource version is not allowed when using continue"}
	e.refuses(request{path: e.configMaps() + "?limit=2&resourceVersion=5&continue=" + t}, w)
}

func checkTokenAtZero(e *Env) {
	t := e.pageToken()
	all := e.list("")
	page := e.list("limit=1&resourceVersion=0&continue=" + t)
	if !slices.Equal(page.names(), all.names()[2:]) {
		e.failf("behind the first 2 of %v come %v", all.names(), page.names())
	}
}

func checkTokenExpired(e *Env) {
	e.createSome("p", 5)
	all := e.list("").names()
	answer := e.get(e.configMaps() + "?limit=2&continue=" + encodeToken(token{"meta.k8s.io/v1", 1, "p1\x00"}))
	if answer.code == 200 {
		e.skipf("%s", reachesBack)
	}
	s, err := answer.status()
	e.must(err)
	e.must(wantExpired.compare(s))
	var carried struct{ Metadata metav1.ListMeta }
	e.must(answer.decode(&carried))
	fresh, err := decodeToken(carried.Metadata.Continue)
	if err != nil || fresh.Revision != -1 {
		e.failf("the 410 carries no token with rv -1 but %q: %v", carried.Metadata.Continue, err)
	}
	page := e.list("limit=2&continue=" + carried.Metadata.Continue)
	behind := slices.Index(all, "p1") + 1
	if want := all[behind : behind+2]; !slices.Equal(page.names(), want) {
		e.failf("going on, inconsistently, gave %v, not %v", page.names(), want)
	}
}

func checkTokenInconsistent(e *Env) {
	e.createSome("p", 3)
	newest := e.create("p5")
	page := e.list("continue=" + encodeToken(token{"meta.k8s.io/v1", -1, "p1\x00"}))
	if page.find("p1") != nil || page.find("p2") == nil || page.find("p5") == nil {
		e.failf("behind p1 at the latest state come %v", page.names())
	}
	if later(e, newest.version(), page.Metadata.ResourceVersion) {
		e.failf("the page is at version %s, older than %s", page.Metadata.ResourceVersion, newest.version())
	}
}
