package herd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
)

// informer does what client-go's reflector does, as of 0.37: a streaming list, a
// watch from its version on, another one from the last version when that ends,
// and all of it again when it cannot go on. Its goroutine is in run.
type informer struct {
	herd *Herd
	node string // whose pods it watches; empty: all pods
	gate *gate  // nil: it is never cut off
	// report is called with each object of a list; nil: it is not.
	report func(object) error

	delay backoff // the goroutine's own

	mu    sync.Mutex // of all below; the connection's reader holds it while it enters what arrives
	conn  *load.Conn
	held  Content
	shown *session // the watch that keeps held up to date; nil: none is open
	want  Digest
	// equal is since when held has been what is wanted, with a watch open that
	// keeps it so; zero: it is not.
	equal       time.Time
	version     uint64 // where the next watch begins; 0: nothing was listed yet
	unavailable bool   // the server does not have that version: any new one will do
	counts      Counts
}

// run is the informer's life. It begins with a watch if something is held
// already.
func (i *informer) run(ctx context.Context) {
	if i.lastVersion() != 0 {
		i.follow(ctx, nil)
		if i.herd.pause(ctx, i.delay.next()) != nil {
			return
		}
	}
	for ctx.Err() == nil {
		i.listAndWatch(ctx)
		if i.herd.pause(ctx, i.delay.next()) != nil {
			return
		}
	}
}

func (i *informer) listAndWatch(ctx context.Context) {
	s, err := i.stream(ctx)
	if err != nil {
		if err = i.list(ctx); err != nil {
			return
		}
	}
	i.follow(ctx, s)
}

// stream is a streaming list. It returns the watch that it goes on as.
func (i *informer) stream(ctx context.Context) (*session, error) {
	for {
		version := i.relistVersion()
		i.count(func(c *Counts) { c.Streams++ })
		s, err := i.request(ctx, stream, i.path("watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="+version+timeout()))
		if err == nil {
			select {
			case <-s.complete:
				return s, nil
			case <-s.over:
				if err = s.result(); err == nil {
					continue
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errRefused), errors.Is(err, errBusy):
			if err := i.herd.pause(ctx, i.delay.next()); err != nil {
				return nil, err
			}
		case errors.Is(err, errExpired), errors.Is(err, errTooLarge):
			i.setUnavailable()
		default:
			return nil, err
		}
	}
}

// list is a list in one answer, for when a streaming one has failed.
func (i *informer) list(ctx context.Context) error {
	for tried := false; ; tried = true {
		version := i.relistVersion()
		if tried {
			version = ""
		}
		i.count(func(c *Counts) { c.Lists++ })
		s, err := i.request(ctx, list, i.path("resourceVersion="+version))
		if err == nil {
			<-s.over
			err = s.err
		}
		if again := errors.Is(err, errExpired) || errors.Is(err, errTooLarge); !again || tried {
			return err
		}
	}
}

// follow watches from the last version, as often as it can. s is a watch that is
// open already, or nil.
func (i *informer) follow(ctx context.Context, s *session) {
	for {
		var err error
		if s == nil {
			s, err = i.request(ctx, resume, i.path("watch=true&allowWatchBookmarks=true&resourceVersion="+strconv.FormatUint(i.lastVersion(), 10)+timeout()))
		}
		begun := err == nil
		if begun {
			err = s.result()
		}
		s = nil
		wait := errors.Is(err, errBusy) || errors.Is(err, errRefused) && !begun
		if ctx.Err() != nil || err != nil && !wait {
			return
		}
		if wait && i.herd.pause(ctx, i.delay.next()) != nil {
			return
		}
	}
}

// timeout is how long the server shall keep a watch open: five to ten minutes.
func timeout() string { return fmt.Sprintf("&timeoutSeconds=%d", 300+rand.IntN(300)) }

func (i *informer) path(query string) string {
	if i.node != "" {
		query = "fieldSelector=" + url.QueryEscape("spec.nodeName="+i.node) + "&" + query
	}
	return "/api/v1/pods?" + query
}

// connect returns the informer's connection, or makes it, as soon as the gate is
// open. client-go gives TLS ten seconds.
func (i *informer) connect(ctx context.Context) (*load.Conn, error) {
	if i.gate != nil {
		if err := i.gate.wait(ctx); err != nil {
			return nil, err
		}
	}
	i.mu.Lock()
	conn := i.conn
	i.mu.Unlock()
	if conn != nil && !closed(conn.Done()) {
		return conn, nil
	}
	options := load.Options{ReadBuffer: 16 << 10}
	if i.node == "" {
		options.ReadBuffer = 0
	}
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := load.Dial(bounded, i.herd.options.Address, i.herd.options.TLS, options)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.counts.error(err)
		return nil, err
	}
	if i.conn != nil {
		i.counts.Bytes += i.conn.Received()
	}
	i.conn = conn
	if i.gate != nil && i.gate.closed() {
		go conn.Close() // all were cut off while it was made
	}
	return conn, nil
}

// cut closes the connection.
func (i *informer) cut() {
	i.mu.Lock()
	conn := i.conn
	i.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// live: a session keeps what is held up to date from now on. The lock is held.
func (i *informer) live(s *session) {
	i.shown = s
	i.judge()
}

// dead: a session is over. The lock is held.
func (i *informer) dead(s *session) {
	if i.shown == s {
		i.shown = nil
	}
	i.judge()
}

// replace: a list is complete. The lock is held.
func (i *informer) replace(s *session, version uint64) {
	i.held, i.version, i.unavailable = s.next, version, false
	s.next = Content{}
	i.counts.Listed++
	if s.asked == stream {
		i.shown = s
	}
	s.done.complete.Do(func() { close(s.complete) })
	i.judge()
}

// judge notes whether the informer holds what it should. The lock is held.
func (i *informer) judge() {
	switch {
	case i.shown == nil || i.held.Digest() != i.want:
		i.equal = time.Time{}
	case i.equal.IsZero():
		i.equal = time.Now()
	}
}

// expect says what the informer should come to hold.
func (i *informer) expect(want Digest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.want = want
	i.judge()
}

func (i *informer) lastVersion() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.version
}

// relistVersion is which version a list must not be older than; empty: it must
// be the newest.
func (i *informer) relistVersion() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unavailable || i.version == 0 {
		return ""
	}
	return strconv.FormatUint(i.version, 10)
}

func (i *informer) setUnavailable() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unavailable = true
}

func (i *informer) count(f func(*Counts)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f(&i.counts)
}

// backoff is what client-go's reflector waits between attempts: 800 ms,
// doubling up to 30 s, each up to twice as long by chance, and from the start
// again after two minutes without a wait.
type backoff struct {
	step time.Duration
	last time.Time
}

func (b *backoff) next() time.Duration {
	const first, most, reset = 800 * time.Millisecond, 30 * time.Second, 2 * time.Minute
	if now := time.Now(); b.step == 0 || now.Sub(b.last) > reset {
		b.step = first
	}
	b.last = time.Now()
	d := b.step
	b.step = min(2*b.step, most)
	return d + time.Duration(rand.Float64()*float64(d))
}
