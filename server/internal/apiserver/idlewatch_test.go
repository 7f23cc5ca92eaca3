package apiserver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/testwait"
)

// watchesServed is how many goroutines serve watches.
func watchesServed() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "apiserver/watchstream.(*Stream)")
}

// TestIdleWatchesHoldNoGoroutine opens watches, with and without initial events: when nothing
// comes, no goroutine serves them. They get their events all the same, end with their clients,
// at their deadlines and with the server, and give back what they hold.
func TestIdleWatchesHoldNoGoroutine(t *testing.T) {
	const watches = 50
	c := newCluster(t)
	revs := seed(c)
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	idle := func() {
		testwait.Stable(t, "no goroutine serves idle watches", func() (any, bool) { seen := watchesServed(); return seen, seen == 0 })
	}
	var open []*frames
	for i := range watches {
		path := expand("/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={third}", revs)
		if i%2 == 0 {
			path = "/api/v1/pods?watch=1" + initialEnd
		}
		stream := c.watch(path)
		if i%2 == 0 {
			for range 4 {
				stream.next()
			}
		}
		open = append(open, stream)
	}
	idle()
	last := c.put(testPod("a", "more", nil, ""))
	for _, stream := range open {
		stream.want(fmt.Sprint("ADDED more@", last))
	}
	idle()
	for _, stream := range open[:watches/2] {
		stream.close()
	}
	testwait.Stable(t, "the watches are closed whose clients have gone", func() (any, bool) { seen := gaugeValue(t, gauge); return seen, seen == watches/2 })
	short := c.watch(fmt.Sprint("/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=", last)) //passes: the watch ends by it
	short.want(fmt.Sprint("BOOKMARK @", last))
	short.wantEnd()
	c.stop()
	for i, stream := range open[watches/2:] {
		if stream.next().Type != "BOOKMARK" {
			t.Errorf("watch %d ends without a bookmark", i)
		}
		stream.wantEnd()
	}
	untilIdle(t, gauge)
	if held := c.server.watches.InUse(); held != 0 || c.server.streams.Open() != 0 || c.server.streams.Connections() != 0 {
		t.Errorf("after their ends, %d watches count, %d are open on %d connections", held, c.server.streams.Open(), c.server.streams.Connections())
	}
}

// TestIdleWatchThatCannotBeSent: a client that keeps the window of its stream shut has its watch
// ended, although no goroutine waited for it before.
func TestIdleWatchThatCannotBeSent(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.WriteTimeout = 200 * time.Millisecond })
	revs := seed(c)
	_, framer := c.dialHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	requests := newRawRequests(framer)
	must(t, requests.write([2]string{":authority", "it"}, [2]string{":path", expand("/api/v1/pods?watch=1&resourceVersion={third}", revs)}))
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	testwait.Stable(t, "the watch is open and idle", func() (any, bool) {
		open, served := gaugeValue(t, gauge), watchesServed()
		return []any{open, served}, open == 1 && served == 0
	})
	c.put(testPod("a", "more", nil, ""))
	for {
		read, err := framer.ReadFrame()
		must(t, err)
		if reset, ok := read.(*http2.RSTStreamFrame); ok {
			t.Log("reset with ", reset.ErrCode)
			break
		}
	}
	untilIdle(t, gauge)
}
