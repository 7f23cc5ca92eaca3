package watchstream

import (
	"time"

	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// trace notes which of the events that were read are those of traced writes. What it costs while
// no write is traced is a load of an atomic for each read of the cursor.
func (t *Stream) trace(b *buffers, events []watchcache.Event) {
	follow := t.streams.config.Events
	if !follow.Following() {
		return
	}
	now := time.Now()
	prefix := t.encoder.Resource().Stored().StorePrefix
	for i := range events {
		if key := events[i].Object.Key; follow.Follows(prefix, key, events[i].Revision) {
			b.sends = append(b.sends, tracing.Send{
				Key: prefix + key, Revision: events[i].Revision, Type: events[i].Type.String(),
				Watch: t.entry.id, User: t.record.User.Name, Agent: t.origin.Agent, Read: now,
			})
		}
	}
}

// traceEncoded notes that all events that were read so far are encoded.
func (b *buffers) traceEncoded() {
	if len(b.sends) == 0 {
		return
	}
	now := time.Now()
	for i := range b.sends {
		if b.sends[i].Encoded.IsZero() {
			b.sends[i].Encoded = now
		}
	}
}

// traceWritten notes that all events that were encoded so far are written.
func (s *Streams) traceWritten(b *buffers) {
	if len(b.sends) == 0 {
		return
	}
	now := time.Now()
	for i := range b.sends {
		b.sends[i].Written = now
	}
	s.config.Events.Sent(b.sends)
	b.sends = b.sends[:0]
}
