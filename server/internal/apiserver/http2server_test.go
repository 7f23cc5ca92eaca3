package apiserver

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rawRequests writes requests as HEADERS frames.
type rawRequests struct {
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	stream  uint32 // of the next request
	token   string
}

func newRawRequests(framer *http2.Framer) *rawRequests {
	r := &rawRequests{framer: framer, stream: 1, token: testToken}
	r.encoder = hpack.NewEncoder(&r.block)
	return r
}

// write writes a GET with the token and the given fields.
func (r *rawRequests) write(fields ...[2]string) error {
	r.block.Reset()
	for _, field := range append([][2]string{{":method", "GET"}, {":scheme", "https"}}, append(fields, [2]string{"authorization", "Bearer " + r.token})...) {
		if err := r.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return err
		}
	}
	r.stream += 2
	return r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream - 2, BlockFragment: r.block.Bytes(), EndHeaders: true, EndStream: true})
}

// dialHTTP2 connects and writes the connection's preface.
func (c *cluster) dialHTTP2(settings ...http2.Setting) (net.Conn, *http2.Framer) {
	c.t.Helper()
	config := c.http2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config)
	must(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	must(c.t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(c.t, err)
	framer := http2.NewFramer(conn, conn)
	must(c.t, framer.WriteSettings(settings...))
	return conn, framer
}

// initialWindow returns the window that a server grants each request's body on
// a connection: the implementations differ in it.
func (c *cluster) initialWindow() uint32 {
	c.t.Helper()
	conn, framer := c.dialHTTP2()
	defer conn.Close()
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
			t.Run("closed window", func(t *testing.T) { testClosedWindowOver(t, implementation) })
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

// testClosedWindowOver has a client that never lets a watch send its events. The
// watch ends all the same.
func testClosedWindowOver(t *testing.T, implementation HTTP2Server) {
	c := newCluster(t, func(s *setup) { s.config.HTTP2Server, s.config.WriteTimeout = implementation, 200*time.Millisecond })
	c.put(testPod("default", "unread", nil, ""))
	for _, query := range []string{"resourceVersion=0", "resourceVersion=0&timeoutSeconds=1", initialEnd[1:] + "&resourceVersion=0"} { //passes: the watch ends by it
		conn, framer := c.dialHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		must(t, newRawRequests(framer).write([2]string{":authority", "x"}, [2]string{":path", "/api/v1/pods?watch=1&" + query}))
		for reset := false; !reset; {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatalf("watch with %s: the stream was not reset before %v", query, err)
			}
			_, reset = frame.(*http2.RSTStreamFrame)
		}
		conn.Close()
	}
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
