package encoding

import (
	"bytes"
	"io"
)

// indenter lays compact JSON out in lines as it passes through, two blanks to
// a level. Unlike json.Indent it needs to hold nothing.
type indenter struct {
	out     io.Writer
	buf     bytes.Buffer
	depth   int
	quoted  bool
	escaped bool
	opened  bool // the last byte opened an object or array
}

// Write takes any piece of one JSON document.
func (n *indenter) Write(p []byte) (int, error) {
	n.buf.Reset()
	for _, c := range p {
		n.add(c)
	}
	if _, err := n.out.Write(n.buf.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (n *indenter) add(c byte) {
	if n.quoted {
		n.buf.WriteByte(c)
		n.quoted = n.escaped || c != '"'
		n.escaped = !n.escaped && c == '\\'
		return
	}
	closing := c == '}' || c == ']'
	if closing {
		n.depth--
	}
	if n.opened != closing { // the first member, or the end after some members
		n.newline()
	}
	n.opened = c == '{' || c == '['
	n.quoted = c == '"'
	n.buf.WriteByte(c)
	switch {
	case n.opened:
		n.depth++
	case c == ',':
		n.newline()
	case c == ':':
		n.buf.WriteByte(' ')
	}
}

func (n *indenter) newline() {
	n.buf.WriteByte('\n')
	for range n.depth {
		n.buf.WriteString("  ")
	}
}
