package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// connection is one of HTTP/2 on which frames are written as the attack likes. It is used
// by one goroutine, besides the one that reads what the server sends.
type connection struct {
	tls    *tls.Conn
	framer *http2.Framer
	fields bytes.Buffer
	encode *hpack.Encoder
	next   uint32
	ended  chan struct{} // closed when the server has ended the connection
	failed error         // the first write that failed; all later ones fail, too
}

// dial opens a connection with these settings. Unless it is deaf, it reads what the server
// sends and acknowledges its settings and pings.
func (a *attacker) dial(ctx context.Context, config *tls.Config, deaf bool, settings ...http2.Setting) (*connection, error) {
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", a.host)
	if err != nil {
		return nil, err
	}
	c := &connection{tls: conn.(*tls.Conn), next: 1, ended: make(chan struct{})}
	c.framer = http2.NewFramer(conn, conn)
	c.framer.AllowIllegalWrites = true
	c.encode = hpack.NewEncoder(&c.fields)
	c.encode.SetMaxDynamicTableSize(0) // the server may allow none before it knows the client
	c.do(conn.SetWriteDeadline(time.Now().Add(hold)))
	_, err = io.WriteString(conn, http2.ClientPreface)
	c.do(err)
	c.do(c.framer.WriteSettings(settings...))
	if deaf {
		return c, c.failed
	}
	// Writes of the reader are not ordered with those of the attack: the framer has one
	// buffer for both. So acknowledgements have a framer of their own, and tls.Conn writes
	// each frame whole.
	reader := http2.NewFramer(conn, conn)
	go func() {
		defer close(c.ended)
		for {
			frame, err := reader.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					err = reader.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					err = reader.WritePing(true, f.Data)
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return c, c.failed
}

func (c *connection) do(err error) {
	if c.failed == nil {
		c.failed = err
	}
}

// close ends the connection without a word.
func (c *connection) close() { _ = c.tls.NetConn().Close() }

// wait holds the connection until the server ends it, which is an error, or the context
// does.
func (c *connection) wait(ctx context.Context) error {
	if c.failed != nil {
		return c.failed
	}
	select {
	case <-c.ended:
		return errors.New("the server has ended the connection")
	case <-ctx.Done():
		return nil
	}
}

// request writes the header of a request and returns its stream. more are further fields, names
// and values in turn, and raw is put behind all, encoded already.
func (c *connection) request(last bool, raw []byte, method, path, token string, more ...string) uint32 {
	c.fields.Reset()
	field := func(name, value string) { c.do(c.encode.WriteField(hpack.HeaderField{Name: name, Value: value})) }
	field(":method", method)
	field(":scheme", "https")
	field(":authority", "localhost")
	field(":path", path)
	if token != "" {
		field("authorization", "Bearer "+token)
	}
	for i := 0; i < len(more); i += 2 {
		field(more[i], more[i+1])
	}
	c.fields.Write(raw)
	id := c.next
	c.next += 2
	block, first := c.fields.Bytes(), true
	for first || len(block) > 0 {
		n := min(len(block), 16<<10)
		if first {
			c.do(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndStream: last, EndHeaders: n == len(block)}))
		} else {
			c.do(c.framer.WriteContinuation(id, n == len(block), block[:n]))
		}
		block, first = block[n:], false
	}
	return id
}
