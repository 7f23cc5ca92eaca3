package h2

import (
	"sync"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// buffer is memory that is lent to connections while they have something to
// read or to write. An idle one holds none. There are two sizes: one for a TLS
// record, and one for all that a batch may grow to, because growing step by step
// copies and clears more than it saves.
type buffer struct{ bytes []byte }

const (
	smallBuffer = frame.DefaultSize
	largeBuffer = outputLimit + smallBuffer
)

var (
	smallBuffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, smallBuffer)} }}
	largeBuffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, largeBuffer)} }}
)

// getBuffer returns an empty buffer of at least smallBuffer.
func getBuffer() *buffer { return smallBuffers.Get().(*buffer) }

// getLargeBuffer returns an empty buffer of at least largeBuffer.
func getLargeBuffer() *buffer { return largeBuffers.Get().(*buffer) }

// put gives the buffer back. Nobody may hold a slice of it.
func (b *buffer) put() {
	size := cap(b.bytes)
	b.bytes = b.bytes[:0]
	switch {
	case size > 4*largeBuffer:
	case size >= largeBuffer:
		largeBuffers.Put(b)
	default:
		smallBuffers.Put(b)
	}
}

// with returns a buffer of the same content with room for n more bytes, if they
// fit into a large one. It may be b; if not, b has been given back.
func (b *buffer) with(n int) *buffer {
	if cap(b.bytes)-len(b.bytes) >= n || cap(b.bytes) >= largeBuffer {
		return b
	}
	large := getLargeBuffer()
	large.bytes = append(large.bytes, b.bytes...)
	b.put()
	return large
}
