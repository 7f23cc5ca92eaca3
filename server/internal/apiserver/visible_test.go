package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/levelwire/levelwire/internal/filteredlist"
)

const visiblePods = "/api/v1/pods?" + filteredlist.Parameter + "=true"

func visibleCluster(t testing.TB, users ...string) *cluster {
	return rbacCluster(t, users, func(s *setup) { s.visible = true })
}

// namesIn lists what a list of pods has, as "a/x", and its metadata.
func (c *cluster) namesIn(path string, headers ...string) (names []string, version, next string, header http.Header) {
	c.t.Helper()
	got := c.get(path, headers...)
	if got.code != 200 {
		c.t.Fatalf("GET %s: %d %s", path, got.code, got.body)
	}
	list := decodeList(c.t, got.body)
	for _, item := range list.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	return names, list.Metadata.ResourceVersion, list.Metadata.Continue, got.header
}

// TestVisibleList has exactly the namespaces in which a user may list, in the order of keys,
// in all forms of lists.
func TestVisibleList(t *testing.T) {
	c := visibleCluster(t, "jane", "joe", "all")
	for _, namespace := range []string{"a", "a-b", "b", "c", "d"} {
		for _, name := range []string{"x", "y"} {
			c.put(testPod(namespace, name, map[string]string{"name": name}, ""))
		}
	}
	c.bind("a", "watcher", "jane")
	c.bind("a-b", "watcher", "jane")
	c.bind("d", "watcher", "jane")
	c.bind("", "watcher", "all")
	all := "a-b/x a-b/y a/x a/y b/x b/y c/x c/y d/x d/y"
	for _, test := range []struct{ user, query, want string }{
		{"jane", "", "a-b/x a-b/y a/x a/y d/x d/y"},
		{"jane", "&resourceVersion=0", "a-b/x a-b/y a/x a/y d/x d/y"},
		{"jane", "&labelSelector=name%3Dy", "a-b/y a/y d/y"},
		{"jane", "&fieldSelector=metadata.namespace%3Da", "a/x a/y"},
		{"jane", "&fieldSelector=metadata.namespace%3Db", ""},
		{"jane", "&fieldSelector=metadata.name%3Dx", "a-b/x a/x d/x"},
		{"joe", "", ""},
		{"all", "", all},
		{testToken, "", all},
	} {
		names, version, _, header := c.namesIn(visiblePods+test.query, asUser(test.user))
		if got := strings.Join(names, " "); got != test.want || version == "" {
			t.Errorf("%s%s has %q@%s, want %q", test.user, test.query, got, version, test.want)
		}
		token := header.Get(filteredlist.Header)
		if (test.user == testToken) != (token == filteredlist.All) || token == "" {
			t.Errorf("%s%s: the header is %q", test.user, test.query, token)
		}
	}
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/cbor"} {
		got := c.get(visiblePods, asUser("jane"), "Accept: "+accept)
		if got.code != 200 || strings.Contains(string(got.body), "\"c\"") || strings.Count(string(got.body), "a-b") == 0 {
			t.Errorf("%s: %d %q", accept, got.code, got.body)
		}
	}
	for path, want := range map[string]int{
		"/api/v1/pods": 403, // as ever
		"/api/v1/pods?" + filteredlist.Parameter + "=yes": 400,
		"/api/v1/nodes?levelwireVisible=true":             403, // nothing to filter by
		"/api/v1/namespaces/b/pods?levelwireVisible=true": 403,
		visiblePods + "&resourceVersion=0&limit=-1":       200,
		visiblePods + "&resourceVersion=0&limit=":         400,
		visiblePods + "&watch=1&resourceVersion=x":        400,
		visiblePods + "&continue=x":                       400,
	} {
		if got := c.get(path, asUser("jane")); got.code != want {
			t.Errorf("GET %s: %d, want %d: %s", path, got.code, want, got.body)
		}
	}
	if got := c.get(visiblePods, "Authorization: "); got.code != 401 && got.code != 403 {
		t.Errorf("anonymous: %d", got.code)
	}
}

// TestVisibleListWithoutServer is what a server answers that is not allowed to filter.
func TestVisibleListWithoutServer(t *testing.T) {
	c := rbacCluster(t, []string{"jane"})
	if got := c.get(visiblePods, asUser("jane")); got.code != 403 || got.header.Get(filteredlist.Header) != "" {
		t.Errorf("%d %v", got.code, got.header)
	}
	if got := c.get(visiblePods); got.code != 200 || got.header.Get(filteredlist.Header) != "" {
		t.Errorf("%d %v", got.code, got.header)
	}
}

// TestVisibleListNeedsWatch if the client says that a watch follows.
func TestVisibleListNeedsWatch(t *testing.T) {
	c := visibleCluster(t, "jane", "joe", "max")
	c.grantRole("lister", []string{"list"}, "", "pods")
	c.grantRole("follower", []string{"watch"}, "", "pods")
	for _, namespace := range []string{"a", "b"} {
		c.put(testPod(namespace, "x", nil, ""))
	}
	c.bind("a", "lister", "jane")
	c.bind("b", "watcher", "jane")
	for value, want := range map[string]string{filteredlist.True: "[a/x b/x]", filteredlist.Watch: "[b/x]"} {
		if names, _, _, _ := c.namesIn("/api/v1/pods?"+filteredlist.Parameter+"="+value, asUser("jane")); fmt.Sprint(names) != want {
			t.Errorf("%s: %s, want %s", value, names, want)
		}
	}

	// Everywhere one of both, and in a namespace the other.
	c.bind("", "lister", "joe")
	c.bind("b", "watcher", "joe")
	for value, want := range map[string]string{filteredlist.True: "[a/x b/x]", filteredlist.Watch: "[b/x]"} {
		names, _, _, header := c.namesIn("/api/v1/pods?"+filteredlist.Parameter+"="+value, asUser("joe"))
		if fmt.Sprint(names) != want || header.Get(filteredlist.Header) == filteredlist.All {
			t.Errorf("a user who may list everywhere, %s: %s, want %s; header %v", value, names, want, header)
		}
	}
	c.bind("", "follower", "max")
	c.bind("b", "watcher", "max")
	watch := c.watch(visiblePods+"&watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1", asUser("max"))
	if first, second := watch.next().String(), watch.next().String(); !strings.HasPrefix(first, "ADDED x@") || !strings.HasPrefix(second, "BOOKMARK") {
		t.Errorf("a user who may watch everywhere: %s, %s", first, second)
	}
}

// TestVisiblePages are all of the first page's version, and of what the user may see then and
// now: grants in between do not count, withdrawals end the list.
func TestVisiblePages(t *testing.T) {
	c := visibleCluster(t, "jane")
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 3 {
			c.put(testPod(namespace, fmt.Sprint("p", i), nil, ""))
		}
	}
	c.bind("a", "watcher", "jane")
	c.bind("c", "watcher", "jane")
	first, version, token, _ := c.namesIn(visiblePods+"&limit=2", asUser("jane"))
	c.bind("b", "watcher", "jane")
	c.put(testPod("a", "p9", nil, ""))
	names := first
	for next := token; next != ""; {
		page, at, more, _ := c.namesIn(visiblePods+"&limit=2&continue="+url.QueryEscape(next), asUser("jane"))
		if at != version {
			t.Fatalf("a page is of version %s, the list of %s", at, version)
		}
		names, next = append(names, page...), more
	}
	if got := fmt.Sprint(names); got != "[a/p0 a/p1 a/p2 c/p0 c/p1 c/p2]" {
		t.Errorf("the list has %s", got)
	}
	exact := visiblePods + "&resourceVersionMatch=Exact&resourceVersion=" + version
	if names, _, _, _ := c.namesIn(exact, asUser("jane")); len(names) != 6 {
		t.Errorf("the exact list has %s", names)
	}
	c.unbind("c", "watcher", "jane")
	for _, path := range []string{exact, visiblePods + "&limit=2&continue=" + url.QueryEscape(token)} {
		if got := c.get(path, asUser("jane")); got.code != 410 {
			t.Errorf("GET %s after the withdrawal: %d %s", path, got.code, got.body)
		}
	}
}

type visibleItems struct {
	Metadata struct {
		ResourceVersion, Continue string
	}
	Items []struct {
		Metadata struct{ Namespace, Name string }
	}
}

func decodeList(t testing.TB, body []byte) (list visibleItems) {
	t.Helper()
	must(t, json.Unmarshal(body, &list))
	return list
}

// TestVisibleWatch shows over HTTP what becomes visible as ADDED, and then a bookmark, and
// what is not any more as DELETED, at the revision of the change.
func TestVisibleWatch(t *testing.T) {
	for _, server := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		c := rbacCluster(t, []string{"jane", "joe"}, func(s *setup) { s.visible, s.config.HTTP2Server = true, server })
		c.overBoth(t, func(t *testing.T) {
			x := c.put(testPod("a", "x", nil, ""))
			c.put(testPod("b", "y", nil, ""))
			c.bind("a", "watcher", "jane")
			w := c.watch(visiblePods+"&watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan", asUser("jane"))
			w.want(fmt.Sprint("ADDED x@", x))
			w.wantPrefixes("BOOKMARK")
			none := c.watch(visiblePods+"&watch=1&resourceVersion="+fmt.Sprint(x), asUser("joe"))

			c.put(testPod("b", "y", nil, ""))
			w.want(fmt.Sprint("MODIFIED x@", c.put(testPod("a", "x", nil, ""))))
			y := c.put(testPod("b", "y", nil, ""))
			c.bind("b", "watcher", "jane")
			w.want(fmt.Sprint("ADDED y@", y))
			w.wantPrefixes("BOOKMARK")
			z := c.put(testPod("b", "z", nil, ""))
			w.want(fmt.Sprint("ADDED z@", z))
			c.unbind("b", "watcher", "jane")
			withdrawn, err := c.store.Current(t.Context())
			must(t, err)
			w.want(fmt.Sprint("DELETED y@", withdrawn-1), fmt.Sprint("DELETED z@", withdrawn))
			c.put(testPod("b", "y", nil, ""))
			w.want(fmt.Sprint("MODIFIED x@", c.put(testPod("a", "x", nil, ""))))

			// Cluster-wide, and back.
			c.bind("", "watcher", "jane")
			w.wantPrefixes("ADDED y@", "ADDED z@")
			w.wantPrefixes("BOOKMARK")
			c.unbind("a", "watcher", "jane")
			c.unbind("", "watcher", "jane")
			w.wantPrefixes("DELETED x@", "DELETED y@", "DELETED z@")

			c.bind("a", "watcher", "joe")
			none.wantPrefixes("ADDED x@")
			c.unbind("a", "watcher", "joe")
			none.wantPrefixes("DELETED x@")
			c.remove("a", "x")
			c.remove("b", "y")
			c.remove("b", "z")
		})
		c.stop()
	}
}

// wantPrefixes reads the next events and compares how they begin.
func (f *frames) wantPrefixes(events ...string) {
	f.t.Helper()
	for _, want := range events {
		if got := f.next().String(); !strings.HasPrefix(got, want) {
			f.t.Fatalf("got event %q, want %q", got, want)
		}
	}
}

// TestVisibleWebSocket: the handshake confirms that the watch is filtered.
func TestVisibleWebSocket(t *testing.T) {
	c := visibleCluster(t, "jane")
	c.bind("a", "watcher", "jane")
	header := http.Header{"Authorization": {"Bearer jane"}}
	config := c.http2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = nil
	dialer := websocket.Dialer{TLSClientConfig: config, HandshakeTimeout: 3 * time.Minute}
	conn, answer, err := dialer.Dial("wss"+strings.TrimPrefix(c.url, "https")+"/api/v1/pods?watch=1&levelwireVisible=true", header)
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	if answer.Header.Get(filteredlist.Header) == "" || answer.Header.Get("Audit-Id") == "" {
		t.Errorf("header: %v", answer.Header)
	}
}
