package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

// CrowdOptions says how many watchers watch what.
type CrowdOptions struct {
	Address string
	TLS     *tls.Config `json:"-"`
	Header  []hpack.HeaderField
	// Watchers is how many there are, PerConn how many share a connection;
	// default 100.
	Watchers, PerConn int
	// Path is what each asks for, with its query; {i} becomes the number of
	// the watcher. It must say from which version on, so that all watchers are sent
	// the same.
	Path     string
	Protobuf bool
	// Stalled watchers, the first ones, take 64 kB and no more. With
	// StalledSocket they share a connection of their own that is not read at all.
	Stalled       int
	StalledSocket bool
}

// Crowd is many watchers, which check and count what they are sent.
type Crowd struct {
	options CrowdOptions
	shares  []*share
}

// Report is what a crowd has seen. Counts are since the crowd began; Latency,
// Bytes and Events since the last Lap.
type Report struct {
	// Open watchers were answered and are not ended; Ended ones were cut off, and
	// StalledEnded those of them that were stalled.
	Open, Ended, StalledEnded int
	// Least and Most are events of single watchers, and Total those of all; in
	// all three, and in Await, stalled watchers do not count.
	Least, Most, Total int64
	// Disordered counts events that were not of a newer version than the one
	// before, on the same watch.
	Disordered, Bookmarks int64
	// Errors are the first few of what ended watchers.
	Errors []string

	Events, Bytes int64
	Latency       Histogram
}

// share is the watchers of one connection. Its reader holds mu while it counts.
type share struct {
	mu       sync.Mutex
	conn     *Conn
	watchers []*watcher
	report   Report // of what is not a watcher's own
	read     int64  // the connection's bytes at the last lap
	stalled  chan struct{}
}

type watcher struct {
	share   *share
	split   Splitter
	each    func([]byte) error
	read    func([]byte) (event, error)
	at      time.Time
	status  int
	seen    int64
	last    uint64
	ended   bool
	stalled bool
	reason  []byte // an answer that is no watch
}

// Gather opens all watches, and returns when all are answered. ctx bounds only
// this.
func Gather(ctx context.Context, o CrowdOptions) (*Crowd, error) {
	if o.PerConn <= 0 {
		o.PerConn = 100
	}
	c := &Crowd{options: o}
	first := 0
	if o.StalledSocket {
		if err := c.join(ctx, 0, o.Stalled); err != nil {
			c.Close()
			return nil, err
		}
		first = o.Stalled
	}
	for i := first; i < o.Watchers; i += o.PerConn {
		if err := c.join(ctx, i, min(i+o.PerConn, o.Watchers)); err != nil {
			c.Close()
			return nil, err
		}
	}
	for {
		r := c.Report(false)
		if r.Ended > 0 {
			c.Close()
			return nil, fmt.Errorf("%d of %d watches were refused: %q", r.Ended, o.Watchers, r.Errors)
		}
		if r.Open == o.Watchers {
			break
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			c.Close()
			return nil, fmt.Errorf("%d of %d watches are open: %w", r.Open, o.Watchers, err)
		}
	}
	if o.StalledSocket && o.Stalled > 0 {
		s := c.shares[0]
		s.mu.Lock()
		s.stalled = make(chan struct{})
		s.mu.Unlock()
	}
	return c, nil
}

// join opens the watchers from and up to, on one connection.
func (c *Crowd) join(ctx context.Context, from, to int) error {
	o := c.options
	buffer, nap := 0, time.Millisecond
	if to-from < 10 {
		// There are many connections, and on each there comes little.
		buffer, nap = 2*maxRecord, 0
	}
	window := 0
	if o.Stalled > 0 {
		window = initialWindow
	}
	conn, err := Dial(ctx, o.Address, o.TLS, Options{ReadBuffer: buffer, StreamWindow: window, Nap: nap})
	if err != nil {
		return err
	}
	s := &share{conn: conn}
	c.shares = append(c.shares, s)
	accept := "application/json"
	if o.Protobuf {
		accept = "application/vnd.kubernetes.protobuf;type=watch"
	}
	header := append([]hpack.HeaderField{{Name: "accept", Value: accept}}, o.Header...)
	for i := from; i < to; i++ {
		w := &watcher{share: s, split: Splitter{Protobuf: o.Protobuf}, read: readJSON, stalled: i < o.Stalled}
		if o.Protobuf {
			w.read = readProtobuf
		}
		w.each = w.event
		s.mu.Lock()
		s.watchers = append(s.watchers, w)
		s.mu.Unlock()
		path := strings.ReplaceAll(o.Path, "{i}", strconv.Itoa(i))
		if err := conn.Send(Request{Path: path, Header: header, Stall: w.stalled && !o.StalledSocket}, w); err != nil {
			return fmt.Errorf("watcher %d: %w", i, err)
		}
	}
	return nil
}

// Report is what was seen until now. With lap, what is counted since the last
// lap begins anew.
func (c *Crowd) Report(lap bool) Report {
	var sum Report
	sum.Least = -1
	for _, s := range c.shares {
		s.mu.Lock()
		s.report.Bytes = s.conn.Received() - s.read
		s.addTo(&sum)
		if lap {
			s.read += s.report.Bytes
			s.report.Events, s.report.Latency = 0, Histogram{}
		}
		s.mu.Unlock()
	}
	sum.Least = max(sum.Least, 0)
	return sum
}

func (s *share) addTo(sum *Report) {
	r := &s.report
	sum.Disordered += r.Disordered
	sum.Bookmarks += r.Bookmarks
	sum.Events += r.Events
	sum.Bytes += r.Bytes
	sum.Latency.Merge(&r.Latency)
	if room := 5 - len(sum.Errors); room > 0 {
		sum.Errors = append(sum.Errors, r.Errors[:min(room, len(r.Errors))]...)
	}
	for _, w := range s.watchers {
		switch {
		case w.ended && w.stalled:
			sum.StalledEnded++
		case w.ended:
			sum.Ended++
		case w.status == 200:
			sum.Open++
		}
		if !w.stalled {
			sum.Total += w.seen
			sum.Most = max(sum.Most, w.seen)
			if sum.Least < 0 || w.seen < sum.Least {
				sum.Least = w.seen
			}
		}
	}
}

// Await waits until the watchers together have seen total events. It returns
// false when there will be no more, or ctx ends.
func (c *Crowd) Await(ctx context.Context, total int64) bool {
	for {
		seen, open := c.count()
		if seen >= total {
			return true
		}
		if open == 0 || pause(ctx, 20*time.Millisecond) != nil {
			return false
		}
	}
}

// count is how many events all watchers have seen, and how many are open.
func (c *Crowd) count() (seen int64, open int) {
	for _, s := range c.shares {
		s.mu.Lock()
		for _, w := range s.watchers {
			if w.stalled {
				continue
			}
			seen += w.seen
			if w.status == 200 && !w.ended {
				open++
			}
		}
		s.mu.Unlock()
	}
	return seen, open
}

// Close ends all watches.
func (c *Crowd) Close() {
	for _, s := range c.shares {
		s.mu.Lock()
		if s.stalled != nil {
			close(s.stalled)
			s.stalled = nil
		}
		s.mu.Unlock()
		s.conn.Close()
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer implements Receiver.
func (w *watcher) Answer(status int, _ []hpack.HeaderField) {
	w.share.mu.Lock()
	defer w.share.mu.Unlock()
	w.status = status
}

// Data implements Receiver.
func (w *watcher) Data(piece []byte, at time.Time) {
	s := w.share
	s.mu.Lock()
	if stalled := s.stalled; stalled != nil {
		s.mu.Unlock()
		<-stalled
		return
	}
	defer s.mu.Unlock()
	if w.ended {
		return
	}
	if w.status != 200 {
		w.reason = append(w.reason, piece[:min(len(piece), 500)]...)
		return
	}
	w.at = at
	if err := w.split.Cut(piece, w.each); err != nil {
		w.end(err)
	}
}

// event looks at one.
func (w *watcher) event(b []byte) error {
	e, err := w.read(b)
	switch {
	case err != nil:
		return err
	case e.failure:
		return fmt.Errorf("an error was sent: %.300q", b)
	}
	r := &w.share.report
	if e.bookmark {
		r.Bookmarks++
		return nil
	}
	w.seen++
	r.Events++
	if e.version <= w.last {
		r.Disordered++
	}
	w.last = e.version
	if !e.sent.IsZero() {
		r.Latency.Add(w.at.Sub(e.sent))
	}
	return nil
}

// End implements Receiver.
func (w *watcher) End(err error) {
	w.share.mu.Lock()
	defer w.share.mu.Unlock()
	switch {
	case errors.Is(err, ErrClosed) || w.ended:
		return
	case w.status != 200:
		err = fmt.Errorf("status %d: %s, %w", w.status, w.reason, err)
	case err == nil:
		err = errors.New("the server ended the watch")
	}
	w.end(err)
}

func (w *watcher) end(err error) {
	w.ended = true
	if r := &w.share.report; len(r.Errors) < 3 {
		r.Errors = append(r.Errors, err.Error())
	}
}
