package apiserver

import (
	"fmt"
	"testing"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestProgressOnRequest: a list has a bookmark sent on the watch that it names, at the list's
// version, and says so. Watches that are not the user's, or of another resource, are left alone.
func TestProgressOnRequest(t *testing.T) {
	const other = "another-token"
	c := newCluster(t, func(s *setup) {
		s.config.Tokens = auth.NewStaticTokens(map[string]auth.User{testToken: {Name: "tester"}, other: {Name: "other"}})
	})
	revs := seed(c)
	named := func(name string) string { return watchstream.ProgressHeader + ": " + name }
	const pods = "/api/v1/namespaces/none/pods"
	stream := c.watch(expand(pods+"?watch=1&allowWatchBookmarks=true&resourceVersion={third}", revs), named("one"))
	without := c.watch(expand(pods+"?watch=1&resourceVersion={third}", revs), named("two")) // wants no bookmarks
	for i := range 3 {
		at := c.put(testPod("a", fmt.Sprint("more-", i), nil, ""))
		list := c.get("/api/v1/pods?limit=1", named("one"))
		if got := list.header.Get(watchstream.ProgressHeader); got != "one" || list.podList(t).ResourceVersion != fmt.Sprint(at) {
			t.Errorf("the header is %q, at version %s, want it at %d", got, list.podList(t).ResourceVersion, at)
		}
		stream.want(fmt.Sprint("BOOKMARK @", at))
	}
	for what, reply := range map[string]reply{
		"no header":       c.get("/api/v1/pods?limit=1"),
		"another name":    c.get("/api/v1/pods?limit=1", named("three")),
		"a resource":      c.get("/api/v1/configmaps?limit=1", named("one")),
		"a user":          c.get("/api/v1/pods?limit=1", named("one"), "Authorization: Bearer "+other),
		"no bookmarks":    c.get("/api/v1/pods?limit=1", named("two")),
		"a get, no watch": c.get("/api/v1/namespaces/a/pods/one", named("one")),
	} {
		if got := reply.header.Get(watchstream.ProgressHeader); got != "" || reply.code != 200 {
			t.Errorf("%s: %d, the header is %q", what, reply.code, got)
		}
	}
	at := c.put(testPod("none", "here", nil, ""))
	stream.want(fmt.Sprint("ADDED here@", at)) // and no bookmark before it
	without.want(fmt.Sprint("ADDED here@", at))
	stream.close()
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	testwait.Stable(t, "the watch is closed whose client has gone", func() (any, bool) { seen := gaugeValue(t, gauge); return seen, seen == 1 })
	if got := c.get("/api/v1/pods?limit=1", named("one")).header.Get(watchstream.ProgressHeader); got != "" {
		t.Errorf("after the end of the watch the header is %q", got)
	}
	c.client = c.http1
	c.watch(pods+"?watch=1&allowWatchBookmarks=true&resourceVersion="+fmt.Sprint(at), named("slow"))
	if got := c.get("/api/v1/pods?limit=1", named("slow")).header.Get(watchstream.ProgressHeader); got != "" {
		t.Errorf("over HTTP/1.1, where a goroutine sleeps in the watch, the header is %q", got)
	}
}
