package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/levelwire/levelwire/internal/testwait"
)

// What a WebSocket client and the server agree on.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
	readLimit      = 4 << 10
)

// webSocketToken begins a subprotocol that is a bearer token.
const webSocketToken = "base64url.bearer.authorization.k8s.io."

// dial opens a watch over WebSocket.
func (c *cluster) dial(path, accept string, protocols ...string) (*websocket.Conn, *http.Response, error) {
	c.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(c.authority)
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: roots}, Subprotocols: protocols, HandshakeTimeout: 3 * time.Minute,
		WriteBufferSize: 4 * readLimit}
	header := http.Header{}
	if !strings.HasPrefix(strings.Join(protocols, " "), webSocketToken) {
		header.Set("Authorization", "Bearer "+testToken)
	}
	if accept != "" {
		header.Set("Accept", accept)
	}
	conn, resp, err := dialer.Dial("wss"+strings.TrimPrefix(c.url, "https")+path, header)
	if err == nil {
		must(c.t, conn.SetReadDeadline(time.Now().Add(3*time.Minute)))
		c.t.Cleanup(func() { conn.Close() })
	}
	return conn, resp, err
}

func (c *cluster) mustDial(path, accept string, protocols ...string) *websocket.Conn {
	c.t.Helper()
	conn, _, err := c.dial(path, accept, protocols...)
	must(c.t, err)
	return conn
}

// wantMessages reads one event from each message.
func wantMessages(t *testing.T, conn *websocket.Conn, kind int, decode func([]byte) string, want ...string) {
	t.Helper()
	for _, want := range want {
		gotKind, data, err := conn.ReadMessage()
		must(t, err)
		if got := decode(data); got != want || gotKind != kind {
			t.Fatalf("message of type %d with %q, want type %d with %q", gotKind, got, kind, want)
		}
	}
}

func eventOfJSON(t *testing.T) func([]byte) string {
	return func(data []byte) string {
		var e frame
		must(t, json.Unmarshal(data, &e))
		return e.String()
	}
}

func eventOfProtobuf(t *testing.T) func([]byte) string {
	return func(data []byte) string {
		var e metav1.WatchEvent
		must(t, e.Unmarshal(data))
		var pod corev1.Pod
		must(t, pod.Unmarshal(unwrap(t, e.Object.Raw, "v1", "Pod")))
		text, err := json.Marshal(pod)
		must(t, err)
		return frame{e.Type, text}.String()
	}
}

func eventOfCBOR(t *testing.T) func([]byte) string {
	return func(data []byte) string {
		var e struct {
			Type   string `json:"type"`
			Object any    `json:"object"`
		}
		must(t, direct.Unmarshal(data, &e))
		text, err := json.Marshal(e.Object)
		must(t, err)
		return frame{e.Type, text}.String()
	}
}

func inBase64(t *testing.T, decode func([]byte) string) func([]byte) string {
	return func(data []byte) string {
		plain, err := base64.StdEncoding.DecodeString(string(data))
		must(t, err)
		return decode(plain)
	}
}

func TestWatchOverWebSocket(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	state := []string{fmt.Sprint("ADDED one@", revs["first"]), fmt.Sprint("ADDED two@", revs["second"]),
		fmt.Sprint("ADDED three@", revs["third"]), fmt.Sprint("BOOKMARK end@", revs["third"])}
	text, binary := websocket.TextMessage, websocket.BinaryMessage
	type opened struct {
		conn   *websocket.Conn
		kind   int
		decode func([]byte) string
	}
	var all []opened
	for _, tt := range []struct {
		accept, protocol string
		kind             int
		decode           func([]byte) string
	}{
		{"", "", text, eventOfJSON(t)},
		{"application/json", binaryProtocol, binary, eventOfJSON(t)},
		{"", base64Protocol, text, inBase64(t, eventOfJSON(t))},
		{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "", text, eventOfJSON(t)},
		{protobufType, "", binary, eventOfProtobuf(t)},
		{protobufType, base64Protocol, text, inBase64(t, eventOfProtobuf(t))},
		{cborType, "", binary, eventOfCBOR(t)},
	} {
		var protocols []string
		if tt.protocol != "" {
			protocols = []string{tt.protocol}
		}
		conn := c.mustDial("/api/v1/pods?watch=1"+initialEnd, tt.accept, protocols...)
		if got := conn.Subprotocol(); got != tt.protocol {
			t.Errorf("subprotocol %q, want %q", got, tt.protocol)
		}
		wantMessages(t, conn, tt.kind, tt.decode, state...)
		all = append(all, opened{conn, tt.kind, tt.decode})
	}
	next := c.put(testPod("a", "one", nil, "n9"))
	for _, o := range all {
		wantMessages(t, o.conn, o.kind, o.decode, fmt.Sprint("MODIFIED one@", next))
	}
}

func wantGoodbye(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	_, data, err := conn.ReadMessage()
	if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("got %q and %v, want a normal close", data, err)
	}
}

func TestWebSocketsEnd(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")

	t.Run("at their deadline", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/pods?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={third}", revs), "") //passes: the watch ends by it
		wantMessages(t, conn, websocket.TextMessage, eventOfJSON(t), fmt.Sprint("BOOKMARK @", revs["third"]))
		wantGoodbye(t, conn)
	})
	t.Run("after an error", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/watch/pods?"+initialEnd+"&resourceVersion={future}", revs), "")
		wantMessages(t, conn, websocket.TextMessage, eventOfJSON(t), "ERROR 504 Timeout")
		wantGoodbye(t, conn)
	})
	t.Run("when the client goes", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/pods?watch=1&resourceVersion={third}", revs), "")
		must(t, conn.Close())
		untilIdle(t, gauge)
	})
	t.Run("when the client says goodbye", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/pods?watch=1&resourceVersion={third}", revs), "")
		goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		must(t, conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Minute)))
		wantGoodbye(t, conn)
		untilIdle(t, gauge)
	})
	t.Run("when the client says too much", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/pods?watch=1&resourceVersion={third}", revs), "")
		// The server may hang up before it has read all of it.
		_ = conn.WriteMessage(websocket.BinaryMessage, make([]byte, 2*readLimit))
		untilIdle(t, gauge)
	})
	t.Run("when the server drains", func(t *testing.T) {
		conn := c.mustDial(expand("/api/v1/pods?watch=1&resourceVersion={third}", revs), "")
		c.stop() // waits for them; goleak would find those it forgot
		wantGoodbye(t, conn)
	})
}

func TestStalledWebSocketIsGivenUp(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.WriteTimeout = 200 * time.Millisecond })
	c.mustDial("/api/v1/pods?watch=1&resourceVersion=0", "")
	filler := testPod("a", "big", map[string]string{}, "")
	filler.Annotations = map[string]string{"fill": strings.Repeat("x", 200<<10)}
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	testwait.Stable(t, "the watch ends of a client that reads nothing", func() (any, bool) {
		c.put(filler)
		open := gaugeValue(t, gauge)
		return open, open == 0
	})
}

func TestPingsAreAnswered(t *testing.T) {
	c := newCluster(t)
	conn := c.mustDial("/api/v1/pods?watch=1&resourceVersion=0", "")
	pong := make(chan string, 1)
	conn.SetPongHandler(func(text string) error {
		pong <- text
		return nil
	})
	must(t, conn.WriteControl(websocket.PingMessage, []byte("there?"), time.Now().Add(time.Minute)))
	go func() { _, _, _ = conn.ReadMessage() }() // ends with the connection
	select {
	case text := <-pong:
		if text != "there?" {
			t.Errorf("pong %q", text)
		}
	case <-time.After(3 * time.Minute):
		t.Error("no pong")
	}
}

func TestWebSocketRefusals(t *testing.T) {
	c := newCluster(t)
	encoded := webSocketToken + base64.RawURLEncoding.EncodeToString([]byte(testToken))
	conn := c.mustDial("/api/v1/pods?watch=1&resourceVersion=0", "", encoded, binaryProtocol)
	if conn.Subprotocol() != binaryProtocol {
		t.Errorf("the token's subprotocol is answered with %q", conn.Subprotocol())
	}
	for name, tt := range map[string]struct {
		path      string
		protocols []string
		code      int
	}{
		"wrong token":   {"/api/v1/pods?watch=1", []string{webSocketToken + "AAAA", binaryProtocol}, 401},
		"broken token":  {"/api/v1/pods?watch=1", []string{webSocketToken + "?", binaryProtocol}, 401},
		"bad version":   {"/api/v1/pods?watch=1&resourceVersion=x", nil, 400},
		"unknown path":  {"/api/v1/nothing?watch=1", nil, 404},
		"not a watch":   {"/api/v1/pods", nil, 200},
		"bad selectors": {"/api/v1/pods?watch=1&labelSelector=((", nil, 400},
	} {
		_, resp, err := c.dial(tt.path, "", tt.protocols...)
		if err == nil || resp == nil || resp.StatusCode != tt.code {
			t.Errorf("%s: %v, %+v, want %d", name, err, resp, tt.code)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	resp := c.open(ctx, c.http1, http.MethodGet, "/api/v1/pods?watch=1", "", "Connection: Upgrade", "Upgrade: websocket")
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(t, err)
	if status := (reply{body: data}).status(t); resp.StatusCode != 400 || !strings.Contains(status.Message, "WebSocket") {
		t.Errorf("an incomplete handshake: %d %s", resp.StatusCode, data)
	}
}
