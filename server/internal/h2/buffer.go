package h2

import (
	"sync"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// buffer is memory that a connection borrows while it has something to read or to
// write. An idle connection holds none. There are two sizes: one for a TLS record,
// and one for the largest batch, because growing step by step copies and clears
// more than it saves.
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

// put returns the buffer to its pool. The caller must not keep a slice of it.
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

// with returns a buffer with the same content and room for n more bytes, if they
// fit into a large one. It may be b; if not, b has been returned to its pool.
func (b *buffer) with(n int) *buffer {
	if cap(b.bytes)-len(b.bytes) >= n || cap(b.bytes) >= largeBuffer {
		return b
	}
	large := getLargeBuffer()
	large.bytes = append(large.bytes, b.bytes...)
	b.put()
	return large
}
