package events

import (
	"hash/maphash"
	"slices"
	"time"

	"k8s.io/utils/lru"
)

// combinedPrefix begins the message of a combined Event, as in client-go.
const combinedPrefix = "(combined from similar events): "

// combiner finds events that differ in their messages only. It tracks the
// trackedMost groups that were used last. Only Run uses it.
type combiner struct {
	after  int
	window time.Duration
	seed   maphash.Seed
	groups *lru.Cache // of *group by similar
}

// group is what is known about similar events: hashes of their first messages, which
// have Events of their own.
type group struct {
	messages []uint64
	last     time.Time
}

func newCombiner(after int, window time.Duration) *combiner {
	return &combiner{after: after, window: window, seed: maphash.MakeSeed(), groups: lru.New(trackedMost)}
}

// combine returns the key of the Event that an occurrence belongs to.
func (c *combiner) combine(o occurrence) eventKey {
	similar := similar{about: o.about, reason: o.reason}
	own := eventKey{similar: similar, message: o.message}
	if c.after < 0 {
		return own
	}
	tracked, found := c.groups.Get(similar)
	g, _ := tracked.(*group)
	if !found || o.at.Sub(g.last) > c.window {
		g = &group{}
		c.groups.Add(similar, g)
	}
	g.last = o.at
	hash := maphash.String(c.seed, o.message)
	switch {
	case slices.Contains(g.messages, hash):
	case len(g.messages) < c.after:
		g.messages = append(g.messages, hash)
	default:
		return eventKey{similar: similar, combined: true}
	}
	return own
}
