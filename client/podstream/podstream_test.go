package podstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

var discard = logr.FromSlogHandler(slog.DiscardHandler)

func TestLogs(t *testing.T) {
	n, c := startNode(t, nil)
	lines := int64(7)
	log, err := Logs(t.Context(), c, "ns", "web", &corev1.PodLogOptions{Container: "main", TailLines: &lines})
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(log)
	if err != nil || string(all) != "one\ncontainer=main&tailLines=7\n" {
		t.Errorf("got %q, %v", all, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}

	cause := errors.New("seen enough")
	for _, end := range []string{"close", "context"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		log, err := Logs(ctx, c, "ns", "web", &corev1.PodLogOptions{Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(log)
		if line, err := r.ReadString('\n'); err != nil || line != "one\n" {
			t.Errorf("got %q, %v", line, err)
		}
		if end == "close" {
			_ = log.Close()
		} else {
			cancel(cause)
			if _, err := io.Copy(io.Discard, r); !errors.Is(err, cause) {
				t.Errorf("the context's end: %v", err)
			}
		}
		n.waitEnd(t.Context())
		_ = log.Close()
		cancel(nil)
	}
	if _, err := Logs(t.Context(), c, "ns", "other", nil); !apierrors.IsNotFound(err) || !client.IsStatus(err) {
		t.Errorf("another pod: %v", err)
	}
	if _, err := Logs(t.Context(), c, "", "web", nil); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("no namespace: %v", err)
	}
}

// protocols is what each test of exec and port forwarding is done with.
func eachProtocol(t *testing.T, test func(t *testing.T, n *node, c *client.Client)) {
	for name, noWebSocket := range map[string]bool{"WebSocket": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			n, c := startNode(t, func(n *node) { n.noWebSocket = noWebSocket })
			test(t, n, c)
		})
	}
}

func TestExec(t *testing.T) {
	eachProtocol(t, func(t *testing.T, n *node, c *client.Client) {
		var stdout, stderr bytes.Buffer
		long := strings.Repeat("0123456789", 20_000)
		err := Exec(t.Context(), c, "ns", "web", ExecOptions{Command: []string{"cat"}, Streams: Streams{Stdin: strings.NewReader(long), Stdout: &stdout}})
		if err != nil || stdout.String() != long {
			t.Errorf("cat: %d bytes, %v", stdout.Len(), err)
		}
		stdout.Reset()
		err = Exec(t.Context(), c, "ns", "web", ExecOptions{Container: "main", Command: []string{"fail", "a b"}, Streams: Streams{Stdout: &stdout, Stderr: &stderr}})
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != 3 || stderr.String() != "no such thing" || stdout.Len() > 0 {
			t.Errorf("fail: %v, %q, %q", err, &stdout, &stderr)
		}
		resize := make(chan TerminalSize, 1)
		resize <- TerminalSize{80, 25}
		err = Exec(t.Context(), c, "ns", "web", ExecOptions{Command: []string{"size"},
			Streams: Streams{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, TTY: true, Resize: resize}})
		if err != nil || stdout.String() != "80x25" {
			t.Errorf("size: %q, %v", &stdout, err)
		}
		stdout.Reset()
		err = Attach(t.Context(), c, "ns", "web", AttachOptions{Streams: Streams{Stdin: strings.NewReader("hello"), Stdout: &stdout}})
		if err != nil || stdout.String() != "hello" {
			t.Errorf("attach: %q, %v", &stdout, err)
		}
	})
}

// The errors of the caller's own streams are not lost.
func TestExecReturnsErrorsOfCopying(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ *node, c *client.Client) {
		full := errors.New("the disk is full")
		err := Exec(t.Context(), c, "ns", "web", ExecOptions{Command: []string{"cat"},
			Streams: Streams{Stdin: strings.NewReader("hello"), Stdout: failing{full}}})
		if !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// signal is a writer that says when it was written to.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	close(s)
	return len(p), nil
}

func TestExecEndsWithItsContext(t *testing.T) {
	eachProtocol(t, func(t *testing.T, n *node, c *client.Client) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		started := make(signal)
		failed := make(chan error, 1)
		go func() {
			failed <- Exec(ctx, c, "ns", "web", ExecOptions{Command: []string{"hang"}, Streams: Streams{Stdout: started}})
		}()
		<-started
		cause := errors.New("enough")
		cancel(cause)
		if err := <-failed; !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		n.waitEnd(t.Context())
	})
}

func TestExecIsRefused(t *testing.T) {
	n, c := startNode(t, func(n *node) { n.down = true })
	streams := Streams{Stdout: io.Discard}
	err := Exec(t.Context(), c, "ns", "web", ExecOptions{Command: []string{"cat"}, Streams: streams})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ns/web") {
		t.Errorf("got %v", err)
	}
	if got := n.requested(); len(got) != 2 || got[0] != "GET /api/v1/namespaces/ns/pods/web/exec" || got[1] != "POST /api/v1/namespaces/ns/pods/web/exec" {
		t.Errorf("requests: %v", got)
	}
	if _, err := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Ports: []string{":80"}}); !apierrors.IsForbidden(err) {
		t.Errorf("port-forward: %v", err)
	}
	for what, call := range map[string]func() error{
		"command":   func() error { return Exec(t.Context(), c, "ns", "web", ExecOptions{Streams: streams}) },
		"namespace": func() error { return Attach(t.Context(), c, "", "web", AttachOptions{Streams: streams}) },
		"name":      func() error { return Attach(t.Context(), c, "ns", "", AttachOptions{Streams: streams}) },
		"Stdin":     func() error { return Attach(t.Context(), c, "ns", "web", AttachOptions{}) },
		"port":      func() error { _, err := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{}); return err },
		"abc": func() error {
			_, err := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Ports: []string{"abc"}})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A redirect is an error: another server gets no request, and with it no credentials.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	for _, code := range []int{302, 307} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Sec-WebSocket-Key") != "" {
				w.WriteHeader(http.StatusForbidden) // so that SPDY is tried
				return
			}
			http.Redirect(w, r, other.URL+"/exec", code)
		}))
		c, err := client.New(&rest.Config{Host: s.URL, BearerToken: "secret"}, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		streams := Streams{Stdout: io.Discard}
		_, forward := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Ports: []string{":80"}})
		_, logs := Logs(t.Context(), c, "ns", "web", nil)
		for what, err := range map[string]error{
			"exec":         Exec(t.Context(), c, "ns", "web", ExecOptions{Command: []string{"ls"}, Streams: streams}),
			"attach":       Attach(t.Context(), c, "ns", "web", AttachOptions{Streams: streams}),
			"port forward": forward, "logs": logs,
		} {
			if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) {
				t.Errorf("%d: %s: %v", code, what, err)
			}
		}
		c.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the other server got %d requests", n)
	}
}

func TestPortForward(t *testing.T) {
	eachProtocol(t, func(t *testing.T, n *node, c *client.Client) {
		f, err := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Ports: []string{":80", ":80"}, Addresses: []string{"127.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, port := range f.Ports() {
			address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port.Local)))
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"hello", "world"} {
				if _, err := io.WriteString(conn, word); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(word))
				if _, err := io.ReadFull(conn, got); err != nil || string(got) != strings.ToUpper(word) {
					t.Errorf("got %q, %v", got, err)
				}
			}
			_ = conn.Close()
		}

		// A port that is in use.
		_, err = PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Addresses: []string{"127.0.0.1"},
			Ports: []string{":80", strconv.Itoa(int(f.Ports()[0].Local)) + ":80"}})
		if err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("a port that is in use: %v", err)
		}
		n.waitEnd(t.Context())
		if f.Err() != nil {
			t.Error(f.Err())
		}
		f.Close()
		n.waitEnd(t.Context())
		if f.Err() != nil {
			t.Errorf("after Close: %v", f.Err())
		}
		if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.Ports()[0].Local)))); err == nil {
			t.Error("the local port still accepts connections")
		}
	})
}

// Nothing listens in the pod: the connection is lost, as with kubectl.
func TestPortForwardLosesThePod(t *testing.T) {
	eachProtocol(t, func(t *testing.T, n *node, c *client.Client) {
		f, err := PortForward(t.Context(), c, "ns", "web", PortForwardOptions{Ports: []string{":81"}, Addresses: []string{"127.0.0.1"},
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.Ports()[0].Local))))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		<-f.Done()
		if !errors.Is(f.Err(), ErrLostConnection) {
			t.Errorf("got %v", f.Err())
		}
	})
}

// The context bounds connecting, too.
func TestConnectingEndsWithTheContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := client.New(restConfig(l.Addr().String()), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"exec": func(ctx context.Context) error {
			return Exec(ctx, c, "ns", "web", ExecOptions{Command: []string{"cat"}, Streams: Streams{Stdout: io.Discard}})
		},
		"port-forward": func(ctx context.Context) error {
			_, err := PortForward(ctx, c, "ns", "web", PortForwardOptions{Ports: []string{":80"}})
			return err
		},
		"log": func(ctx context.Context) error {
			_, err := Logs(ctx, c, "ns", "web", nil)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) //passes: the server never answers
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// client-go's forwarder has no error for a context that ends as it connects.
func TestTheEndOfTheContextIsTheErrorOfACallWithoutOne(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u := &upgrade{ctx: ctx}
	if err := u.failed("port-forward to", "ns", "web", nil); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "nil") {
		t.Errorf("error %v", err)
	}
}
