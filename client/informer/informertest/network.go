package informertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
)

// network is the way to a server, on which watches can be cut, kept from
// opening and answered in the server's place. Other requests pass.
type network struct {
	mu      sync.Mutex
	next    http.RoundTripper
	open    map[*body]struct{}
	down    bool  // connections are refused
	answers []int // of the next watches, in the server's place; 0: connection refused
	watches []url.Values
	asked   chan struct{} // closed by the next watch
}

func newNetwork() *network { return &network{open: map[*body]struct{}{}, asked: make(chan struct{})} }

func (n *network) wrap(next http.RoundTripper) http.RoundTripper {
	n.next = next
	return n
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("watch") == "" {
		return n.next.RoundTrip(r)
	}
	if answer, err := n.instead(r, query); answer != nil || err != nil {
		return answer, err
	}
	answer, err := n.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b := &body{ReadCloser: answer.Body, network: n}
	answer.Body = b
	n.open[b] = struct{}{}
	return answer, nil
}

// instead is what a watch gets in place of the server's answer, if anything.
func (n *network) instead(r *http.Request, query url.Values) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, refused()
	}
	n.watches = append(n.watches, query)
	close(n.asked)
	n.asked = make(chan struct{})
	if len(n.answers) == 0 {
		return nil, nil
	}
	code := n.answers[0]
	n.answers = n.answers[1:]
	if code == 0 {
		return nil, refused()
	}
	reason := map[int]string{http.StatusGone: "Expired", http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError"}[code]
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"on purpose"}`, code, reason)
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), ContentLength: int64(len(status))}, nil
}

func refused() error { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }

// answer has the next watches answered with these codes; 0 is a connection
// that is refused.
func (n *network) answer(codes ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers = codes
}

// cut ends all watches in the middle.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for b := range n.open {
		b.broken = true
		_ = b.ReadCloser.Close() // wakes blocked reads
	}
}

// setDown cuts all watches and refuses new ones, or lets them pass again.
func (n *network) setDown(down bool) {
	n.mu.Lock()
	n.down = down
	n.mu.Unlock()
	if down {
		n.cut()
	}
}

// opened returns how many watches there are, and how many there were.
func (n *network) opened() (open, ever int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open), len(n.watches)
}

// await waits until the watches that were asked for are as wanted.
func (n *network) await(e *env, what string, enough func([]url.Values) bool) {
	e.Helper()
	for {
		n.mu.Lock()
		done, asked := enough(n.watches), n.asked
		n.mu.Unlock()
		if done {
			return
		}
		select {
		case <-asked:
		case <-e.ctx.Done():
			e.Fatalf("waited in vain for %s", what)
		}
	}
}

// body is a watch's answer.
type body struct {
	io.ReadCloser
	network *network
	broken  bool // guarded by network.mu
}

var errCut = errors.New("connection reset on purpose")

// Read implements io.Reader. After the cut it delivers nothing: to close the answer
// does not wait until its connection is closed, and more may arrive until then.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	if b.broken {
		return 0, errCut
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.network.mu.Lock()
	delete(b.network.open, b)
	b.network.mu.Unlock()
	return b.ReadCloser.Close()
}
