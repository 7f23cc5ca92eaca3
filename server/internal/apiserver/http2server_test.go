package apiserver

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// initialWindow returns the window that a server grants each request's body on
// a connection: the implementations differ in it.
func (c *cluster) initialWindow() uint32 {
	c.t.Helper()
	config := c.http2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config)
	must(c.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(c.t, err)
	framer := http2.NewFramer(conn, conn)
	must(c.t, framer.WriteSettings())
	frame, err := framer.ReadFrame()
	must(c.t, err)
	value, _ := frame.(*http2.SettingsFrame).Value(http2.SettingInitialWindowSize)
	return value
}

// TestHTTP2Servers lists, watches and waits over each implementation of HTTP/2.
func TestHTTP2Servers(t *testing.T) {
	windows := map[uint32]HTTP2Server{}
	for _, implementation := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		t.Run(string(implementation), func(t *testing.T) {
			c := newCluster(t, func(s *setup) { s.config.HTTP2Server = implementation })
			if other, ok := windows[c.initialWindow()]; ok {
				t.Errorf("the server is the same as with %s", other)
			}
			windows[c.initialWindow()] = implementation
			t.Run("list", func(t *testing.T) { testListOver(t, c) })
			t.Run("watches of a connection", func(t *testing.T) { testWatchesOver(t, c) })
			t.Run("streaming list", func(t *testing.T) { testStreamingListOver(t, c) })
			t.Run("wait", func(t *testing.T) { testWaitOver(t, c) })
			t.Run("drain", func(t *testing.T) { testDrainOver(t, c) })
		})
	}
}

func testListOver(t *testing.T, c *cluster) {
	for i := range 50 {
		c.put(testPod("default", fmt.Sprintf("listed-%02d", i), map[string]string{"in": "list"}, strings.Repeat("n", 60)))
	}
	resp := c.open(t.Context(), c.client, http.MethodGet, "/api/v1/pods?labelSelector=in%3Dlist", "")
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if list := (reply{resp.StatusCode, resp.Header, body}).podList(t); resp.ProtoMajor != 2 || len(list.Items) != 50 {
		t.Errorf("%d pods over %s", len(list.Items), resp.Proto)
	}
}

// testWatchesOver has one event wake many watches of one connection.
func testWatchesOver(t *testing.T, c *cluster) {
	start := c.put(testPod("default", "before", nil, ""))
	var streams []*frames
	for range 20 {
		streams = append(streams, c.watch(fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", start)))
	}
	created := c.put(testPod("default", "watched", nil, ""))
	changed := c.put(testPod("default", "watched", map[string]string{"a": "b"}, ""))
	removed := c.remove("default", "watched")
	var all sync.WaitGroup
	for _, stream := range streams {
		all.Go(func() {
			for _, want := range []string{
				fmt.Sprintf("ADDED watched@%d", created), fmt.Sprintf("MODIFIED watched@%d", changed), fmt.Sprintf("DELETED watched@%d", removed),
			} {
				var e frame
				if err := stream.decoder.Decode(&e); err != nil || e.String() != want {
					t.Errorf("got %q, %v, want %q", e, err, want)
				}
			}
		})
	}
	all.Wait()
}

func testStreamingListOver(t *testing.T, c *cluster) {
	stream := c.watch("/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=in%3Dlist")
	for i := range 50 {
		if e := stream.next(); !strings.HasPrefix(e.String(), fmt.Sprintf("ADDED listed-%02d@", i)) {
			t.Fatalf("event %d is %q", i, e)
		}
	}
	end := stream.next()
	var bookmark struct{ Metadata metav1.ObjectMeta }
	must(t, json.Unmarshal(end.Object, &bookmark))
	if end.Type != "BOOKMARK" || bookmark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the initial events end with %s %s", end.Type, end.Object)
	}
	rev := c.put(testPod("default", "listed-50", map[string]string{"in": "list"}, ""))
	stream.want(fmt.Sprintf("ADDED listed-50@%d", rev))
}

// testWaitOver does what kubectl wait does: it watches one object until it has a
// label.
func testWaitOver(t *testing.T, c *cluster) {
	rev := c.put(testPod("default", "awaited", nil, ""))
	stream := c.watch(fmt.Sprintf("/api/v1/namespaces/default/pods?watch=1&resourceVersion=%d&fieldSelector=metadata.name%%3Dawaited", rev))
	c.put(testPod("default", "other", nil, ""))
	done := c.put(testPod("default", "awaited", map[string]string{"ready": "true"}, ""))
	stream.want(fmt.Sprintf("MODIFIED awaited@%d", done))
}

// testDrainOver ends the server under a watch, whose stream ends cleanly.
func testDrainOver(t *testing.T, c *cluster) {
	stream := c.watch("/api/v1/pods?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dnone")
	c.stop()
	stream.wantEnd()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "https://"))
	if err == nil {
		conn.Close()
		t.Error("the server listens after its end")
	}
}
