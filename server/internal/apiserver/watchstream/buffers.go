package watchstream

import (
	"sync"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// eventsPerRead is how many events are taken from a cursor at a time.
const eventsPerRead = 64

// buffers are what a goroutine needs while it writes events. An idle stream holds
// none.
type buffers struct {
	events [eventsPerRead]watchcache.Event
	used   int // of events, at most
	parts  encoding.Parts
	sends  []tracing.Send // of the traced events among those that are being sent; usually none

	progress progress // of the stream that the request's goroutine writes
}

var bufferPool = sync.Pool{New: func() any {
	return &buffers{parts: encoding.Parts{Bytes: make([]byte, 0, encoding.WriteSize)}}
}}

// release puts the buffers back, without what they refer to.
func (b *buffers) release() {
	clear(b.events[:b.used])
	b.used = 0
	b.parts.Reset()
	b.sends = nil
	if cap(b.parts.Bytes) > 16*encoding.WriteSize {
		b.parts.Bytes = make([]byte, 0, encoding.WriteSize)
	}
	bufferPool.Put(b)
}
