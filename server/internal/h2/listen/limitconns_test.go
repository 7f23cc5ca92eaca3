package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// limited is a listener of a limit, and what was accepted from it.
type limited struct {
	t        *testing.T
	limit    *ConnectionLimit
	address  string
	accepted chan net.Conn
	mu       sync.Mutex
	log      strings.Builder // guarded by mu
}

func listenLimited(t *testing.T, most int) *limited { return listenPerUser(t, most, 0) }

// listenPerUser is listenLimited with a limit of each user.
func listenPerUser(t *testing.T, most, perUser int) *limited {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{t: t, address: inner.Addr().String(), accepted: make(chan net.Conn, 100)}
	l.limit = NewConnectionLimit(most, perUser, slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.log.Write(p)
	}), nil)))
	l.limit.newcomerTime = 0 // no test depends on how long it takes
	listener := LimitWrites(l.limit.Listener(inner), time.Minute)
	done := make(chan error, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				done <- err
				return
			}
			l.accepted <- conn
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

// dial returns a client's connection.
func (l *limited) dial() net.Conn {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	return conn
}

// open returns a client's connection, and a context of requests on it.
func (l *limited) open() (client, server net.Conn, request context.Context) {
	l.t.Helper()
	client = l.dial()
	server = <-l.accepted
	l.t.Cleanup(func() { server.Close() })
	return client, server, l.limit.Context(l.t.Context(), tls.Server(&BatchConn{Conn: server}, nil))
}

// closed waits until the server has closed the connection.
func (l *limited) closed(conn net.Conn) {
	l.t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		l.t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		l.t.Errorf("a connection that should be closed: %v", err)
	}
}

func (l *limited) want(open int, refused, evicted int64) {
	l.t.Helper()
	if got := l.limit; got.Open() != open || got.Refused() != refused || got.Evicted() != evicted {
		l.t.Errorf("%d are open, %d were refused, %d evicted; want %d, %d, %d", got.Open(), got.Refused(), got.Evicted(), open, refused, evicted)
	}
}

// hold opens a connection that a user holds.
func (l *limited) hold(by Holder) (client, server net.Conn, c *Conn) {
	l.t.Helper()
	return l.holdAs(by, false)
}

// holdAs is hold for one of the system's users, too.
func (l *limited) holdAs(by Holder, system bool) (client, server net.Conn, c *Conn) {
	l.t.Helper()
	client, server, request := l.open()
	c = FromContext(request)
	if err := c.Hold(by, system); err != nil || !c.Held() {
		l.t.Fatalf("%s holds no more: %v", by.Name, err)
	}
	return client, server, c
}

// refused opens a connection that a user may not hold, and returns why.
func (l *limited) refused(by Holder) (*Conn, string) {
	l.t.Helper()
	_, _, request := l.open()
	c := FromContext(request)
	err := c.Hold(by, false)
	if err == nil || c.Held() {
		l.t.Fatalf("%s holds one more", by.Name)
	}
	return c, err.Error()
}

var (
	admin     = user("admin")
	discarded = slog.New(slog.DiscardHandler)
)

func user(name string) Holder { return Holder{Name: name} }

// TestConnectionsAreLimited: those that users hold stay, others are refused and counted, and
// when one ends, another gets in. Only users of the system, and only where there are but
// three, can hold all.
func TestConnectionsAreLimited(t *testing.T) {
	l := listenLimited(t, 3)
	var open []net.Conn
	for i := range 3 {
		_, server, c := l.holdAs(user(fmt.Sprint("admin", i)), true)
		if err := c.Hold(user("of a proxy"), false); err != nil {
			t.Error(err)
		}
		c.Used()
		open = append(open, server)
	}
	for range 20 {
		l.closed(l.dial())
	}
	l.want(3, 20, 0)
	l.mu.Lock()
	if lines := strings.Count(l.log.String(), "\n"); lines != 1 || !strings.Contains(l.log.String(), "ulimit -n") {
		t.Errorf("logged %d lines: %s", lines, l.log.String())
	}
	l.mu.Unlock()
	for range 2 { // the second closing does not count
		open[0].Close()
	}
	_, server, _ := l.open()
	open[0] = server
	l.want(3, 20, 0)
	for _, conn := range open {
		conn.Close()
	}
	l.want(0, 20, 0)
}

// TestConnectionsMakeRoom: a new one takes the place of that which was used longest ago
// and whose client is not authenticated.
func TestConnectionsMakeRoom(t *testing.T) {
	l := listenLimited(t, 4)
	known, _, request := l.open()
	if err := FromContext(request).Hold(user("known"), false); err != nil {
		t.Fatal(err)
	}
	used, _, request := l.open()
	silent, _, _ := l.open()
	gone, goneServer, _ := l.open()
	FromContext(request).Used()

	second, _, _ := l.open()
	l.closed(silent)
	l.want(4, 0, 1)
	l.open()
	l.closed(gone)
	goneServer.Close() // the second closing does not count
	l.want(4, 0, 2)
	l.open()
	l.closed(used)
	for range 20 {
		l.open()
	}
	l.closed(second)
	l.want(4, 0, 23)
	if err := known.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil { //passes: nothing is sent
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := known.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the connection of the authenticated client: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if lines := strings.Count(l.log.String(), "\n"); lines != 1 || !strings.Contains(l.log.String(), "no user holds") {
		t.Errorf("logged %d lines: %s", lines, l.log.String())
	}
}

// TestNewcomersAreNotClosedFirst: clients that ask without credentials, on as many connections
// as no user holds and as often as they like, close no newcomer before it says who it is.
func TestNewcomersAreNotClosedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewConnectionLimit(200, 0, discarded)
		asking := make([]*Conn, 200)
		for i := range asking {
			asking[i] = admit(t, l)
			asking[i].Used()
		}
		time.Sleep(2 * moveInterval)
		newcomer := admit(t, l)
		for i := range 100 { // of its own, which are newcomers, too
			for _, c := range asking {
				c.Used()
			}
			time.Sleep(newcomerTime / 200)
			for _, c := range asking {
				c.Used()
			}
			if admit(t, l); newcomer.closed {
				t.Fatalf("closed by connection %d after it", i)
			}
		}
		if err := newcomer.Hold(user("known"), false); err != nil || !newcomer.Held() {
			t.Errorf("%v, held: %v", err, newcomer.Held())
		}
	})
}

// TestNewcomersAreClosedForNewcomers, the first one first, when there is nothing else; so they
// are in their place among the others afterwards.
func TestNewcomersAreClosedForNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewConnectionLimit(4, 0, discarded)
		var all []*Conn
		open := func(n int) {
			for range n {
				all = append(all, admit(t, l))
			}
		}
		open(7)
		if !all[2].closed || all[3].closed || l.Refused() != 0 {
			t.Errorf("closed: the third %v, the fourth %v; %d were refused", all[2].closed, all[3].closed, l.Refused())
		}
		time.Sleep(newcomerTime)
		all[3].Used()
		open(1)
		if all[3].closed || !all[4].closed {
			t.Errorf("closed: the used one %v, that after it %v", all[3].closed, all[4].closed)
		}
	})
}

// connOf is a connection of a client with an address.
type connOf struct {
	net.Conn
	remote net.Addr
}

func (c connOf) RemoteAddr() net.Addr { return c.remote }

// TestManyNewcomersOfOneHost close each other, and not those of other hosts, however many there
// are; two addresses of IPv6 may be the same host's.
func TestManyNewcomersOfOneHost(t *testing.T) {
	for _, hosts := range [][3]string{{"10.0.0.1", "10.0.0.1", "10.0.0.2"}, {"::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"}} {
		synctest.Test(t, func(t *testing.T) {
			l := NewConnectionLimit(16, 0, discarded)
			open := func(i int, host string) *Conn {
				client, server := net.Pipe()
				c := l.admit(connOf{server, &net.TCPAddr{IP: net.ParseIP(host), Port: 1 + i}})
				t.Cleanup(func() { client.Close(); c.Close() })
				return c
			}
			first := open(0, hosts[0])
			newcomer := open(0, hosts[2])
			for i := range 1000 {
				if open(i, hosts[i%2]); newcomer.closed {
					t.Fatalf("closed by connection %d of another host", i)
				}
			}
			if !first.closed {
				t.Error("the first of the host is kept")
			}
			for range 20 { // each for one of its own
				open(0, hosts[2])
			}
			if !newcomer.closed || l.Open() != 16 {
				t.Errorf("closed for others of its host: %v; %d are open", newcomer.closed, l.Open())
			}
		})
	}
}

// TestRequestsMoveAConnectionOnceInAWhile, if their clients are not authenticated.
func TestRequestsMoveAConnectionOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewConnectionLimit(3, 0, discarded)
		often, once, later := admit(t, l), admit(t, l), admit(t, l)
		time.Sleep(newcomerTime)
		often.Used()
		once.Used()
		later.Used()
		time.Sleep(moveInterval - 1)
		often.Used()
		if admit(t, l); !often.closed || once.closed {
			t.Errorf("closed: that which asks often %v, that after it %v", often.closed, once.closed)
		}
		time.Sleep(time.Nanosecond)
		once.Used()
		if admit(t, l); once.closed || !later.closed {
			t.Errorf("closed: that which asks again %v, that after it %v", once.closed, later.closed)
		}
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestNoLimit admits all.
func TestNoLimit(t *testing.T) {
	limit := NewConnectionLimit(0, 0, discarded)
	for i := range 100 {
		client, server := net.Pipe()
		defer client.Close()
		c := limit.admit(server)
		if c == nil {
			t.Fatal(fmt.Sprint(i))
		}
		ctx := limit.Context(t.Context(), c)
		FromContext(ctx).Used()
		if err := FromContext(ctx).Hold(user("one"), false); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	other, _ := net.Pipe()
	defer other.Close()
	stranger := FromContext(limit.Context(t.Context(), other)) // which is not the limit's
	stranger.Used()
	stranger.Busy()
	stranger.Idle(time.Now())
	stranger.OnYield(func() {})
	if err := stranger.Hold(user("one"), false); err != nil || !stranger.Held() {
		t.Error("a connection that is not counted is bounded")
	}
}
