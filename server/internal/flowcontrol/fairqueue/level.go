package fairqueue

import (
	"container/list"
	"math"
	"slices"
)

const (
	// shareOfFree is how many times what is free one flow may hold. A flow alone gets
	// three quarters of a level; k flows that want as much as they can get have equal
	// parts, and leave a third of such a part free. So a flow that comes next gets a
	// seat at once, and no share lies idle for flows that are not there.
	shareOfFree = 3
	// widestPercent of a level's nominal limit is what one request may have at most.
	widestPercent = 15
)

// Level is one priority level.
type Level struct {
	seats *Seats

	// All are guarded by Seats.mu.
	config     Config
	nominal    int64 // seats that are its own
	guaranteed int64 // those that it does not lend
	most       int64 // those that it may have, with borrowed ones
	removed    bool  // no longer configured
	used       int64
	flows      map[flowKey]*flow // also some that hold nothing and wait for nothing
	schemas    map[string]*Schema
	queue      list.List // of *flow: those with requests that wait, in the order of their turns
	waiters    int       // requests that wait
	queued     int       // those of them that count for the limit of the queues
	// blocked says that the flow whose turn it is waits for more seats than are free:
	// no other takes them.
	blocked bool
	stuck   bool // nothing more can be granted, during Seats.grant
}

// configure sets the limits of a level. Seats.mu is held.
func (l *Level) configure(c Config, seats, shares int) {
	l.config, l.removed = c, false
	l.nominal = 0
	if shares > 0 {
		l.nominal = int64(math.Ceil(float64(seats) * float64(c.Shares) / float64(shares)))
	}
	l.guaranteed = l.nominal - part(l.nominal, c.LendablePercent)
	l.most = math.MaxInt64
	if c.BorrowPercent >= 0 {
		l.most = l.nominal + part(l.nominal, c.BorrowPercent)
	}
	for name, schema := range l.schemas {
		if schema.executing == 0 && schema.waiting == 0 && !slices.Contains(c.Schemas, name) {
			delete(l.schemas, name)
		}
	}
	for _, name := range c.Schemas {
		if l.schemas[name] == nil {
			l.schemas[name] = &Schema{name: name}
		}
	}
}

// Schema returns the counters of one of Config.Schemas; nil if it is none of them.
func (l *Level) Schema(name string) *Schema {
	l.seats.mu.Lock()
	defer l.seats.mu.Unlock()
	return l.schemas[name]
}

// counts returns how many of all seats the level takes: those that it uses, and those
// that it keeps for itself.
func (l *Level) counts() int64 {
	if l.removed {
		return 0
	}
	used := l.used
	if l.config.Exempt {
		used = min(used, l.nominal) // an exempt level may use more than there are
	}
	return max(used, l.guaranteed)
}

// use changes how many seats the level uses.
func (l *Level) use(n int64) {
	before := l.counts()
	l.used += n
	l.seats.counted += l.counts() - before
}

// headroom returns how many more seats the level may take.
func (l *Level) headroom() int64 {
	switch {
	case l.config.Exempt:
		return math.MaxInt64
	case l.removed:
		return l.nominal - l.used
	}
	free := max(l.seats.limit-l.seats.counted, 0) + l.counts() - l.used
	return min(free, l.most-l.used)
}

// admits reports whether a flow may hold n more seats.
func (l *Level) admits(f *flow, n int64) bool {
	if l.config.Exempt {
		return true
	}
	headroom := l.headroom()
	if n > headroom {
		// A level that has become so small still does one request at a time.
		return l.used == 0 && n > l.nominal && l.nominal > 0
	}
	// The multiplication does not overflow: what is free is at most the nominal limits.
	return f.held == 0 || l.config.OneFlow || f.held+n <= shareOfFree*(headroom-n)
}

// widest returns how many seats one request may have.
func (l *Level) widest() int64 { return max(part(l.nominal, widestPercent), 1) }

// fill says how much of its own seats a level uses, to compare levels.
func (l *Level) fill() float64 {
	if l.nominal == 0 {
		return math.Inf(1)
	}
	return float64(l.used) / float64(l.nominal)
}
