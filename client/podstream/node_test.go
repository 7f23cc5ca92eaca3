package podstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/levelwire/levelwire/client"
)

// node is an API server whose only node runs processes that are Go functions. It
// speaks the streaming protocols as kube-apiserver and the kubelet do.
type node struct {
	t                 *testing.T
	noWebSocket, down bool // what it does not upgrade to: WebSocket, anything
	ended             chan struct{}

	mu       sync.Mutex
	requests []string
}

// process is what a command sees of its streams; those that were not asked for are
// empty or discard.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	sizes          io.Reader // JSON documents
	gone           <-chan struct{}
}

// run is the node's commands.
func (p process) run(command []string) int {
	switch command[0] {
	case "cat":
		_, _ = io.Copy(p.stdout, p.stdin)
	case "fail":
		_, _ = io.WriteString(p.stderr, "no such thing")
		return 3
	case "size":
		var size TerminalSize
		if err := json.NewDecoder(p.sizes).Decode(&size); err == nil {
			_, _ = fmt.Fprintf(p.stdout, "%dx%d", size.Width, size.Height)
		}
	case "hang":
		_, _ = io.WriteString(p.stdout, "hanging")
		<-p.gone
	}
	return 0
}

// status is what the error stream says about the end of a process.
func status(code int) []byte {
	s := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		s = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: "failed",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(code)}}}}
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

func startNode(t *testing.T, change func(*node)) (*node, *client.Client) {
	t.Helper()
	n := &node{t: t, ended: make(chan struct{}, 10)}
	if change != nil {
		change(n)
	}
	s := httptest.NewTLSServer(n)
	t.Cleanup(s.Close)
	c, err := client.New(&rest.Config{Host: s.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, client.Options{UserAgent: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return n, c
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.requests = append(n.requests, r.Method+" "+r.URL.Path)
	n.mu.Unlock()
	subresource, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/ns/pods/web/")
	switch {
	case r.Header.Get("Authorization") != "Bearer secret" || !strings.HasPrefix(r.UserAgent(), "tester"):
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case !ok:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case subresource == "log":
		n.log(w, r)
	case n.down, n.noWebSocket && websocket.IsWebSocketUpgrade(r):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case subresource == "portforward" && websocket.IsWebSocketUpgrade(r):
		n.tunnel(w, r)
	case subresource == "portforward":
		n.forward(w, r)
	case websocket.IsWebSocketUpgrade(r):
		n.webSocket(w, r)
	default:
		n.spdy(w, r)
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "refused: " + string(reason)})
}

// log sends two lines, and ends unless the client follows.
func (n *node) log(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "one\n%s\n", r.URL.RawQuery)
	if r.URL.Query().Get("follow") == "true" {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		n.ended <- struct{}{}
	}
}

// command is what an exec asks for; an attach is to a cat.
func command(r *http.Request) []string {
	if strings.HasSuffix(r.URL.Path, "/attach") {
		return []string{"cat"}
	}
	return r.URL.Query()["command"]
}

// channelWriter writes the frames of one channel of a WebSocket.
type channelWriter struct {
	mu      *sync.Mutex
	conn    *websocket.Conn
	channel byte
}

func (w channelWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.conn.WriteMessage(websocket.BinaryMessage, append([]byte{w.channel}, p...))
}

// webSocket speaks v5.channel.k8s.io.
func (n *node) webSocket(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	stdin, stdinWriter := io.Pipe()
	sizes, sizesWriter := io.Pipe()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer func() { _ = stdinWriter.Close() }()
		defer func() { _ = sizesWriter.Close() }()
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			switch message[0] {
			case remotecommand.StreamStdIn:
				_, _ = stdinWriter.Write(message[1:])
			case remotecommand.StreamResize:
				_, _ = sizesWriter.Write(message[1:])
			case remotecommand.StreamClose:
				_ = stdinWriter.Close()
			}
		}
	}()
	mu := new(sync.Mutex)
	code := process{stdin, channelWriter{mu, conn, 1}, channelWriter{mu, conn, 2}, sizes, gone}.run(command(r))
	_, _ = channelWriter{mu, conn, remotecommand.StreamErr}.Write(status(code))
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	n.ended <- struct{}{}
}

// spdy speaks v4.channel.k8s.io.
func (n *node) spdy(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 5)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	gone := make(chan struct{})
	go func() {
		<-conn.CloseChan()
		close(gone)
	}()
	p := process{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, gone: gone}
	var errorStream httpstream.Stream
	expected := 1
	for _, stream := range []string{"stdin", "stdout", "stderr", "tty"} {
		if r.URL.Query().Get(stream) == "true" {
			expected++
		}
	}
	for range expected {
		select {
		case s := <-streams:
			switch s.Headers().Get(corev1.StreamType) {
			case corev1.StreamTypeStdin:
				p.stdin = s
			case corev1.StreamTypeStdout:
				p.stdout = s
			case corev1.StreamTypeStderr:
				p.stderr = s
			case corev1.StreamTypeResize:
				p.sizes = s
			default:
				errorStream = s
			}
		case <-gone:
			return
		}
	}
	code := p.run(command(r))
	_, _ = errorStream.Write(status(code))
	for _, s := range []any{p.stdout, p.stderr, errorStream} {
		if closer, ok := s.(io.Closer); ok {
			_ = closer.Close()
		}
	}
	<-gone
	n.ended <- struct{}{}
}

// tunnel forwards ports by SPDY within a WebSocket.
func (n *node) tunnel(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"SPDY/3.1+" + portforward.PortForwardProtocolV1Name}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	h := &echo{}
	s, err := spdy.NewServerConnection(portforward.NewTunnelingConnectionWithLogger(discard, conn), h.stream)
	if err != nil {
		n.t.Error(err)
		return
	}
	defer func() { _ = s.Close() }()
	<-s.CloseChan()
	n.ended <- struct{}{}
}

// forward forwards ports by SPDY alone.
func (n *node) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	h := &echo{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, h.stream)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	<-conn.CloseChan()
	n.ended <- struct{}{}
}

// echo is a pod that answers on port 80 in capitals, and on other ports not at all.
type echo struct{}

func (echo) stream(s httpstream.Stream, replied <-chan struct{}) error {
	go func() {
		<-replied
		defer func() { _ = s.Close() }()
		port80 := s.Headers().Get(corev1.PortHeader) == "80"
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			if !port80 {
				_, _ = io.WriteString(s, "connection refused")
			}
			return
		}
		if !port80 {
			return
		}
		buf := make([]byte, 100)
		for {
			k, err := s.Read(buf)
			if err != nil {
				return
			}
			_, _ = s.Write(bytes.ToUpper(buf[:k]))
		}
	}()
	return nil
}

func (n *node) requested() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests)
}

// waitEnd waits until the node has noticed the end of a stream.
func (n *node) waitEnd(ctx context.Context) {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-ctx.Done():
		n.t.Error("the node has not seen the end of the stream")
	}
}
