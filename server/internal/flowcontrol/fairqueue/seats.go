package fairqueue

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Seats are all seats of a server, divided among levels. It is safe for concurrent use.
type Seats struct {
	count     int
	queueWait time.Duration

	// mu guards everything below, and all levels, flows and schemas.
	mu      sync.Mutex
	levels  map[string]*Level
	limit   int64    // sum of the levels' nominal limits
	counted int64    // sum of what the levels count, see Level.counts
	waiting []*Level // those with requests that wait
}

// New returns seats without levels. A request waits in a queue for queueWait at most.
func New(count int, queueWait time.Duration) *Seats {
	return &Seats{count: count, queueWait: queueWait, levels: map[string]*Level{}}
}

// Config is the configuration of one level.
type Config struct {
	Name string
	// Exempt levels admit every request at once.
	Exempt bool
	// Shares is the level's part of all seats, in proportion to the other levels'
	// shares. That part is its nominal limit.
	Shares int
	// LendablePercent of the nominal limit may be borrowed by other levels.
	LendablePercent int
	// BorrowPercent is how much of the nominal limit the level may borrow in addition to
	// it; negative: as much as there is.
	BorrowPercent int
	// Queues, HandSize and QueueLength bound the requests that wait: those of one flow
	// by HandSize times QueueLength, all by Queues times QueueLength. Zero: none waits.
	// Flow.Wait is not bounded by them, and leaves that room to others.
	Queues, HandSize, QueueLength int
	// OneFlow lets one flow hold all seats of the level.
	OneFlow bool
	// Schemas names the FlowSchemas whose requests the level gets.
	Schemas []string
}

// Configure gives the seats these levels and no others. Levels of a name that was there
// before keep their requests. A level that is not among them anymore keeps its seats
// until its last request has ended.
func (s *Seats) Configure(configs []Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shares := 0
	for _, c := range configs {
		shares += c.Shares
	}
	former := s.levels
	s.levels = make(map[string]*Level, len(configs))
	s.limit, s.counted = 0, 0
	for _, c := range configs {
		l := former[c.Name]
		if l == nil {
			l = &Level{seats: s, flows: map[flowKey]*flow{}, schemas: map[string]*Schema{}}
		}
		delete(former, c.Name)
		l.configure(c, s.count, shares)
		s.levels[c.Name] = l
		s.limit += l.nominal
		s.counted += l.counts()
	}
	for _, l := range former {
		l.removed = true
	}
	s.grant()
}

// Level returns the level of a name; nil if there is none.
func (s *Seats) Level(name string) *Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.levels[name]
}

// sorted returns the levels by name. mu is held.
func (s *Seats) sorted() []*Level {
	return slices.SortedFunc(maps.Values(s.levels), func(a, b *Level) int { return cmp.Compare(a.config.Name, b.config.Name) })
}

// part returns so many percent of n, rounded.
func part(n int64, percent int) int64 { return int64(math.Round(float64(n) * float64(percent) / 100)) }
