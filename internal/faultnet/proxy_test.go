package faultnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is how long a test listens to be sure that nothing comes.
const quiet = 50 * time.Millisecond

// echoServer sends back what it gets, and ends when its client does.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// newProxy puts a proxy in front of an echo server.
func newProxy(t *testing.T) *Proxy {
	t.Helper()
	p, err := New(echoServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// connect returns a connection through the proxy that has carried one message
// both ways, so that the proxy knows it.
func connect(t *testing.T, p *Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	send(t, c, "hello")
	receive(t, c, "hello")
	return c.(*net.TCPConn)
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(quiet)) //passes: nothing is sent
	defer c.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want nothing on an open connection", n, err)
	}
}

// wantBroken reads to the end, which must come as an error.
func wantBroken(t *testing.T, c net.Conn) {
	t.Helper()
	b, err := io.ReadAll(c)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("after %d bytes: %v, want a broken connection", len(b), err)
	}
}

// wantRefused connects, which fails at once or right after.
func wantRefused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	wantBroken(t, c)
}

func TestTransparent(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB, many chunks
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(want)
		sent <- errors.Join(err, c.CloseWrite())
	}()
	got, err := io.ReadAll(c)
	if err = errors.Join(err, <-sent); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d, or others", len(got), len(want))
	}
	testwait.Stable(t, "the connection to be gone", func() (any, bool) { seen := p.Stats().Open; return seen, seen == 0 })
	total := int64(len(want) + len("hello"))
	if got, want := p.Stats(), (Stats{Accepted: 1, Bytes: [2]int64{total, total}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCut(t *testing.T) {
	p := newProxy(t)
	a, b := connect(t, p), connect(t, p)
	if n := p.Cut(); n != 2 {
		t.Errorf("cut %d connections", n)
	}
	wantBroken(t, a)
	wantBroken(t, b)
	testwait.Stable(t, "both to be gone", func() (any, bool) { seen := p.Stats().Open; return seen, seen == 0 })
	if n := p.Cut(); n != 0 {
		t.Errorf("cut %d connections again", n)
	}
	connect(t, p) // new ones are welcome
}

func TestRefuse(t *testing.T) {
	p := newProxy(t)
	old := connect(t, p)
	p.Refuse(true)
	wantRefused(t, p)
	testwait.Stable(t, "the refusal to be counted", func() (any, bool) { seen := p.Stats().Refused; return seen, seen == 1 })
	send(t, old, "still here")
	receive(t, old, "still here")
	p.Refuse(false)
	connect(t, p)
}

func TestTargetDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // the port refuses connections now
	p, err := New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wantRefused(t, p)
	testwait.Stable(t, "the refusal to be counted", func() (any, bool) { seen := p.Stats().Refused; return seen, seen == 1 })
	if s := p.Stats(); s.Accepted != 0 {
		t.Errorf("%+v", s)
	}
}

func TestBadTarget(t *testing.T) {
	if p, err := New("nonsense"); err == nil {
		p.Close()
		t.Error("a target without a port was accepted")
	}
}

func TestStall(t *testing.T) {
	for _, d := range []Direction{ToServer, ToClient} {
		p := newProxy(t)
		c := connect(t, p)
		p.Stall(d, true)
		send(t, c, "ping")
		wantSilence(t, c)
		if d == ToClient { // the stall of one direction does not reach the other
			testwait.Stable(t, "the server to get it", func() (any, bool) { seen := p.Stats().Bytes[ToServer]; return seen, seen == int64(len("helloping")) })
		}
		p.Stall(d, false)
		receive(t, c, "ping") // late, but not lost
	}
}

func TestStallHoldsTheEndBack(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.Stall(ToClient, true)
	c.CloseWrite() // the server ends its side in turn
	wantSilence(t, c)
	p.Stall(ToClient, false)
	if b, err := io.ReadAll(c); err != nil || len(b) != 0 {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestCutWhileStalled(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.Stall(ToServer, true)
	send(t, c, "lost")
	p.Cut()
	wantBroken(t, c)
	testwait.Stable(t, "the connection to be gone", func() (any, bool) { seen := p.Stats().Open; return seen, seen == 0 })
}

func TestCloseWrite(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.CloseWrite(ToClient)
	if b, err := io.ReadAll(c); err != nil || len(b) != 0 {
		t.Fatalf("got %q, %v, want a clean end", b, err)
	}
	before := p.Stats().Bytes[ToServer]
	send(t, c, "more") // this half is still open
	testwait.Stable(t, "the server to get it", func() (any, bool) { seen := p.Stats().Bytes[ToServer]; return seen, seen == before+4 })
}

func TestDelay(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	const by = 100 * time.Millisecond
	p.Delay(ToClient, by)
	start := time.Now()
	send(t, c, "slow")
	receive(t, c, "slow")
	if took := time.Since(start); took < by {
		t.Errorf("took %v", took)
	}
	// Lifting a delay that is hours long frees what waits.
	p.Delay(ToServer, time.Hour)
	send(t, c, "stuck")
	wantSilence(t, c)
	p.Heal()
	receive(t, c, "stuck")
}

func TestLimit(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.Limit(ToServer, 10_000)
	message := string(bytes.Repeat([]byte("x"), 2000))
	start := time.Now()
	send(t, c, message)
	receive(t, c, message)
	if took := time.Since(start); took < 150*time.Millisecond { // 2000 bytes take 200 ms
		t.Errorf("took %v", took)
	}
}

func TestCutAfter(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	before := p.Stats().Bytes[ToServer]
	p.CutAfter(ToServer, 7)
	send(t, c, "0123")
	receive(t, c, "0123")
	send(t, c, "4567")
	wantBroken(t, c)
	if got := p.Stats().Bytes[ToServer] - before; got != 7 {
		t.Errorf("%d bytes went through", got)
	}
	c = connect(t, p) // the fault is used up
	send(t, c, "0123456789")
	receive(t, c, "0123456789")
}

func TestCutAfterLifted(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.CutAfter(ToServer, 1)
	p.Heal()
	send(t, c, "0123456789")
	receive(t, c, "0123456789")
}

// The goroutines of a proxy end with it, whatever they wait for.
func TestCloseUnderFaults(t *testing.T) {
	p := newProxy(t)
	c := connect(t, p)
	p.Stall(ToClient, true)
	p.Delay(ToServer, time.Hour)
	send(t, c, "never")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantBroken(t, c)
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("a closed proxy still listens")
	}
}
