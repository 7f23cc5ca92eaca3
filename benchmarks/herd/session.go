package herd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
)

// asked is what a request is for.
type asked int

const (
	resume asked = iota // a watch from the last version
	stream              // a streaming list, and the watch behind it
	list                // a list
)

// Why a request brought nothing.
var (
	errRefused  = errors.New("connection refused")
	errBusy     = errors.New("the server is busy (429)")
	errExpired  = errors.New("the version has expired (410)")
	errTooLarge = errors.New("the version is not there yet (504)")
	errFailed   = errors.New("the server failed")
	errShort    = errors.New("the stream ended at once, with nothing in it")
)

// session is one request and what comes of it. The connection's reader, or a
// goroutine that inflates, enters what arrives, under the informer's lock.
type session struct {
	of     *informer
	asked  asked
	begun  time.Time
	status int
	wait   time.Duration // what Retry-After says; negative: nothing
	body   []byte        // of what is no success, its beginning

	packed *io.PipeWriter // takes what arrives compressed; nil: nothing does
	split  load.Splitter
	items  items
	next   Content // the list, while it arrives
	events int

	answered chan struct{} // closed when there is a status, or will be none
	complete chan struct{} // closed when the list is complete
	over     chan struct{} // closed when nothing more is to be expected
	done     struct{ answered, complete, over sync.Once }
	err      error // why it is over; nil: the server ended it as it should
}

func newSession(of *informer, what asked) *session {
	return &session{
		of: of, asked: what, begun: time.Now(), wait: -1, split: load.Splitter{Protobuf: true},
		answered: make(chan struct{}), complete: make(chan struct{}), over: make(chan struct{}),
	}
}

// Answer implements load.Receiver.
func (s *session) Answer(status int, header []hpack.HeaderField) {
	s.of.mu.Lock()
	s.status = status
	for _, f := range header {
		if seconds, err := strconv.Atoi(f.Value); f.Name == "retry-after" && err == nil {
			s.wait = time.Duration(seconds) * time.Second
		}
		if f.Name == "content-encoding" && f.Value == "gzip" && s.packed == nil {
			var read *io.PipeReader
			read, s.packed = io.Pipe()
			go s.inflate(read)
		}
	}
	if s.asked == resume && status == http.StatusOK {
		s.of.counts.Resumes++
		s.of.live(s)
	}
	s.of.mu.Unlock()
	s.done.answered.Do(func() { close(s.answered) })
}

// inflate enters what arrives compressed, until it ends.
func (s *session) inflate(from *io.PipeReader) {
	z, err := gzip.NewReader(from)
	buffer := make([]byte, 16<<10)
	for err == nil {
		var n int
		n, err = z.Read(buffer)
		s.enter(buffer[:n])
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	_ = from.CloseWithError(err) // what still comes is not looked at
	s.finish(err)
}

// Data implements load.Receiver.
func (s *session) Data(piece []byte, _ time.Time) {
	if s.packed != nil {
		_, _ = s.packed.Write(piece) // the stream is broken if it fails
		return
	}
	s.enter(piece)
}

// enter takes the next piece of an answer.
func (s *session) enter(piece []byte) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	var err error
	switch {
	case s.err != nil:
		return
	case s.status != http.StatusOK:
		s.body = append(s.body, piece[:min(len(piece), 2000-min(len(s.body), 2000))]...)
	case s.asked == list:
		err = s.items.cut(piece, func(item []byte) error {
			o, err := readObject(item)
			s.next.Set(o.key, o.version)
			return err
		})
	default:
		err = s.split.Cut(piece, s.event)
	}
	if err != nil {
		s.end(err)
	}
}

// event enters one.
func (s *session) event(b []byte) error {
	c, err := readChange(b)
	if err != nil {
		return err
	}
	s.events++
	i := s.of
	into, listing := &i.held, s.asked == stream && !closed(s.complete)
	if listing {
		into = &s.next
	}
	switch c.kind {
	case "ERROR":
		return verdict(c.code, c.tooLarge)
	case "DELETED":
		into.Remove(c.key)
	case "ADDED", "MODIFIED":
		into.Set(c.key, c.version)
	}
	if i.report != nil && c.kind == "ADDED" {
		if err := i.report(c.object); err != nil {
			return err
		}
	}
	switch {
	case c.initialEnd && listing:
		i.replace(s, c.version)
	case !listing:
		i.version = c.version
		i.judge()
	}
	return nil
}

// End implements load.Receiver.
func (s *session) End(err error) {
	if s.packed != nil {
		_ = s.packed.CloseWithError(err) // always nil; no error is an end
		return
	}
	s.finish(err)
}

// finish is after the last piece.
func (s *session) finish(err error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case err != nil:
	case s.status == 0:
		err = io.ErrUnexpectedEOF
	case s.status != http.StatusOK:
		err = verdict(s.status, bytes.Contains(s.body, []byte(tooLargeCause)))
	case s.asked == list && s.items.version == 0:
		err = io.ErrUnexpectedEOF
	case s.asked == list:
		s.of.replace(s, s.items.version)
	}
	s.end(err)
}

// end says that nothing more is to be expected. The lock is held.
func (s *session) end(err error) {
	s.done.over.Do(func() {
		s.err = err
		s.of.counts.note(s, err)
		s.of.dead(s)
		close(s.over)
	})
	s.done.answered.Do(func() { close(s.answered) })
}

// verdict is what a status means to a reflector.
func verdict(code int, tooLarge bool) error {
	switch {
	case code == http.StatusGone:
		return errExpired
	case code == http.StatusTooManyRequests:
		return errBusy
	case tooLarge:
		return errTooLarge
	}
	return errFailed
}

// result is how a stream that was answered came to its end.
func (s *session) result() error {
	<-s.over
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	switch {
	case errors.Is(s.err, errExpired), errors.Is(s.err, errBusy), errors.Is(s.err, errTooLarge), errors.Is(s.err, errFailed):
		return s.err
	case s.events == 0 && time.Since(s.begun) < time.Second:
		return errShort
	}
	return nil // cut off, or ended: the same to a reflector
}

// request sends one until it is answered with success, or there is no point in
// more. As client-go's REST client does, it repeats what the server asks to
// repeat, and what a broken connection cut off, up to ten times.
func (i *informer) request(ctx context.Context, what asked, path string) (*session, error) {
	const attempts = 10
	for attempt := 0; ; attempt++ {
		s, err := i.attempt(ctx, what, path)
		if err == nil {
			return s, nil
		}
		wait := time.Second
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case s != nil && s.wait >= 0:
			wait = s.wait
		case s != nil && s.status != 0, errors.Is(err, errRefused), !transient(err):
			return nil, err
		}
		if attempt == attempts {
			if s == nil || s.status == 0 {
				err = errShort // client-go makes an empty stream of it
			}
			return nil, err
		}
		if err := i.herd.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// attempt is one of a request. The session is nil if there was no connection.
func (i *informer) attempt(ctx context.Context, what asked, path string) (*session, error) {
	conn, err := i.connect(ctx)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errRefused
		}
		return nil, err
	}
	s := newSession(i, what)
	if err := conn.Send(load.Request{Path: path, Header: header}, s); err != nil {
		conn.Close()
		return nil, err
	}
	<-s.answered
	if s.status == http.StatusOK { // written before answered was closed
		return s, nil
	}
	<-s.over
	return s, s.err
}

var header = []hpack.HeaderField{
	{Name: "accept", Value: "application/vnd.kubernetes.protobuf,application/json"},
	{Name: "accept-encoding", Value: "gzip"},
	{Name: "user-agent", Value: "herd"},
}

// transient errors are those of connections that broke or took too long.
func transient(err error) bool {
	var slow net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, load.ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
