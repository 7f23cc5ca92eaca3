package faultnet

import (
	"context"
	"maps"
	"net"
	"testing"

	"github.com/levelwire/levelwire/internal/testwait"
)

// newBalancer puts a balancer in front of n echo servers.
func newBalancer(t *testing.T, n int) (*Balancer, []string) {
	t.Helper()
	var targets []string
	for range n {
		targets = append(targets, echoServer(t))
	}
	b, err := NewBalancer(targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, targets
}

func wantOpen(t *testing.T, b *Balancer, want map[string]int) {
	t.Helper()
	if got := b.Open(); !maps.Equal(got, want) {
		t.Errorf("connections are %v, want %v", got, want)
	}
}

func TestBalancerTakesTurns(t *testing.T) {
	b, targets := newBalancer(t, 3)
	for range 6 {
		connect(t, b.Proxy)
	}
	wantOpen(t, b, map[string]int{targets[0]: 2, targets[1]: 2, targets[2]: 2})
}

func TestBalancerDrain(t *testing.T) {
	b, targets := newBalancer(t, 2)
	old := connect(t, b.Proxy) // to the first
	b.Drain(targets[0], true)
	for range 3 {
		connect(t, b.Proxy)
	}
	send(t, old, "still here")
	receive(t, old, "still here")
	wantOpen(t, b, map[string]int{targets[0]: 1, targets[1]: 3})

	b.Drain(targets[1], true)
	wantRefused(t, b.Proxy)
	b.Drain(targets[0], false)
	connect(t, b.Proxy)
	wantOpen(t, b, map[string]int{targets[0]: 2, targets[1]: 3})
}

func TestBalancerKill(t *testing.T) {
	b, targets := newBalancer(t, 2)
	first, second, third := connect(t, b.Proxy), connect(t, b.Proxy), connect(t, b.Proxy)
	if n := b.Kill(targets[0]); n != 2 {
		t.Errorf("%d connections were killed, want 2", n)
	}
	wantBroken(t, first)
	wantBroken(t, third)
	send(t, second, "alive")
	receive(t, second, "alive")
	testwait.Stable(t, "the killed connections to be gone", func() (any, bool) { seen := b.Open()[targets[0]]; return seen, seen == 0 })
}

func TestBalancerReplace(t *testing.T) {
	b, targets := newBalancer(t, 2)
	old := connect(t, b.Proxy) // to the first
	third := echoServer(t)
	b.Replace(targets[0], third)
	for range 4 {
		connect(t, b.Proxy)
	}
	send(t, old, "still here")
	receive(t, old, "still here")
	wantOpen(t, b, map[string]int{targets[0]: 1, targets[1]: 2, third: 2})
}

// A server that does not listen costs its clients nothing but the attempt.
func TestBalancerSkipsWhoDoesNotListen(t *testing.T) {
	up := echoServer(t)
	b, err := NewBalancer("127.0.0.1:1", up)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 4 {
		connect(t, b.Proxy)
	}
	wantOpen(t, b, map[string]int{up: 4})
	if s := b.Stats(); s.Refused != 0 {
		t.Errorf("%d connections were refused", s.Refused)
	}
}

// slow lets a test do something between the dialing of a server and its connection.
type slow struct {
	route
	dialed chan func()
}

func (s slow) dial(ctx context.Context, dialer *net.Dialer) (net.Conn, string, error) {
	conn, target, err := s.route.dial(ctx, dialer)
	if meanwhile, ok := <-s.dialed; ok {
		meanwhile()
	}
	return conn, target, err
}

// A connection that is being made when its server is drained and killed, or all
// are refused and cut, is none of those that stay.
func TestBalancerSparesNoConnectionThatIsBeingMade(t *testing.T) {
	targets := []string{echoServer(t), echoServer(t)}
	servers := &group{all: []backend{{target: targets[0]}, {target: targets[1]}}}
	dialed := make(chan func(), 2)
	p, err := listen(slow{servers, dialed})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := &Balancer{p, servers}
	dialed <- func() {
		b.Drain(targets[0], true)
		b.Kill(targets[0])
	}
	dialed <- func() {} // as it goes to the other
	connect(t, p)
	wantOpen(t, b, map[string]int{targets[1]: 1})
	dialed <- func() {
		b.Refuse(true)
		b.Cut()
	}
	wantRefused(t, p)
	testwait.Stable(t, "no connection", func() (any, bool) { seen := len(b.Open()); return seen, seen == 0 })
	close(dialed)
}

func TestBalancerBadTarget(t *testing.T) {
	if b, err := NewBalancer("127.0.0.1:1", "nonsense"); err == nil {
		b.Close()
		t.Error("a target without a port was accepted")
	}
}

// An unknown target is a mistake in the test, which must not pass unnoticed.
func TestBalancerUnknownTarget(t *testing.T) {
	b, _ := newBalancer(t, 1)
	defer func() {
		if recover() == nil {
			t.Error("a target that there is not was drained")
		}
	}()
	b.Drain("127.0.0.1:1", true)
}
