package load

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Request is what is asked of the server.
type Request struct {
	Method string // default GET
	Path   string // with the query
	Header []hpack.HeaderField
	// Body is kept until it is sent; it must not be changed.
	Body []byte
	// Stall leaves the stream's window at Options.StreamWindow for ever, so
	// that the server cannot send more than that: a client that does not read.
	Stall bool
}

// Receiver gets what arrives on a stream, from the connection's reader. Arguments
// are valid during the call. While a Receiver blocks, the reader reads nothing
// from the connection.
type Receiver interface {
	// Answer comes first.
	Answer(status int, header []hpack.HeaderField)
	// Data is the body's next piece; at is when it was read from the socket.
	Data(piece []byte, at time.Time)
	// End comes last, exactly once; nil means that the answer is complete.
	End(err error)
}

type stream struct {
	id       uint32
	to       Receiver
	answered bool
	stall    bool
	consumed int // of its window, for receiving; the reader's own

	window int    // for sending
	body   []byte // what is not sent yet
}

// Send sends a request. Its answer goes to the receiver, and so does every
// error that comes later. After an error from Send the receiver is not called.
func (c *Conn) Send(r Request, to Receiver) error {
	c.mu.Lock()
	if err := c.open(r, to); err != nil {
		c.mu.Unlock()
		return err
	}
	// A failed write ends the connection, and the receiver gets that error.
	_ = c.flush()
	return nil
}

// Room is how many more streams the server allows now.
func (c *Conn) Room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.maxStreams-len(c.streams), 0)
}

func (c *Conn) open(r Request, to Receiver) error {
	switch {
	case c.err != nil:
		return c.err
	case len(c.streams) >= c.maxStreams:
		return ErrFull
	}
	s := &stream{id: c.next, to: to, stall: r.Stall, window: c.firstWin, body: r.Body}
	if err := c.writeHeaders(s, r); err != nil {
		return err
	}
	c.next += 2
	c.streams[s.id] = s
	if more := maxWindow - c.options.StreamWindow; more > 0 && !r.Stall {
		if err := c.framer.WriteWindowUpdate(s.id, uint32(more)); err != nil {
			return err
		}
	}
	if len(s.body) == 0 {
		return nil
	}
	c.blocked = append(c.blocked, s)
	return c.writeBodies()
}

func (c *Conn) writeHeaders(s *stream, r Request) error {
	if r.Method == "" {
		r.Method = "GET"
	}
	c.block.Reset()
	// Paths differ from request to request: as sensitive ones they do not push
	// what repeats out of the table.
	fields := append([]hpack.HeaderField{
		{Name: ":method", Value: r.Method}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: c.authority}, {Name: ":path", Value: r.Path, Sensitive: true},
	}, r.Header...)
	if len(r.Body) > 0 {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(r.Body))})
	}
	for _, f := range fields {
		if err := c.fields.WriteField(f); err != nil {
			return err
		}
	}
	if c.block.Len() > c.maxFrame {
		return fmt.Errorf("%s: %d bytes of header are more than a frame", r.Path, c.block.Len())
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.id, BlockFragment: c.block.Bytes(), EndStream: len(r.Body) == 0, EndHeaders: true,
	})
}

// writeBodies sends of the bodies what the windows allow.
func (c *Conn) writeBodies() error {
	waiting := c.blocked[:0]
	for _, s := range c.blocked {
		for len(s.body) > 0 {
			n := min(len(s.body), c.maxFrame, c.window, s.window)
			if n <= 0 {
				break
			}
			if err := c.framer.WriteData(s.id, n == len(s.body), s.body[:n]); err != nil {
				return err
			}
			s.body = s.body[n:]
			c.window -= n
			s.window -= n
		}
		if len(s.body) > 0 && c.streams[s.id] == s {
			waiting = append(waiting, s)
		}
	}
	clear(c.blocked[len(waiting):])
	c.blocked = waiting
	return nil
}

// dataBegins implements frameHandler.
func (c *Conn) dataBegins(id uint32, length int) error {
	c.mu.Lock()
	c.current = c.streams[id] // nil for one that has ended meanwhile
	c.mu.Unlock()
	c.consumed += length
	open, openStream := 0, 0
	if c.consumed >= refill {
		open, c.consumed = c.consumed, 0
	}
	if s := c.current; s != nil && !s.stall {
		if s.consumed += length; s.consumed >= refill {
			openStream, s.consumed = s.consumed, 0
		}
	}
	if open+openStream == 0 {
		return nil
	}
	return c.openWindows(id, open, openStream)
}

func (c *Conn) openWindows(id uint32, open, openStream int) error {
	c.mu.Lock()
	if open > 0 {
		if err := c.framer.WriteWindowUpdate(0, uint32(open)); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if openStream > 0 {
		if err := c.framer.WriteWindowUpdate(id, uint32(openStream)); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	return c.flush()
}

// data implements frameHandler.
func (c *Conn) data(piece []byte) error {
	if c.current != nil {
		c.current.to.Data(piece, c.at)
	}
	return nil
}

// dataEnds implements frameHandler.
func (c *Conn) dataEnds(last bool) error {
	if s := c.current; last && s != nil {
		c.remove(s.id, nil)
	}
	c.current = nil
	return nil
}

// remove ends a stream.
func (c *Conn) remove(id uint32, why error) {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if s != nil {
		s.to.End(why)
	}
}
