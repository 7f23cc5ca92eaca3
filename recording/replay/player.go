package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/levelwire/levelwire/recording"
)

// MaxSpeed is the speed without waiting.
var MaxSpeed = math.Inf(1)

// Status is what a Player does.
type Status struct {
	// Revision is the current one of the Store, Time when it was recorded.
	Revision int64     `json:"revision"`
	Time     time.Time `json:"time"`
	// First and Last are the revisions between which the recording is.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// FirstTime and LastTime are when these were recorded.
	FirstTime time.Time `json:"firstTime"`
	LastTime  time.Time `json:"lastTime"`
	// Speed is how many times faster than recorded it goes on; 0 means without waiting.
	Speed  float64 `json:"speed"`
	Paused bool    `json:"paused"`
	// Ended says that there are no more changes. Error says why if the recording is
	// damaged there.
	Ended bool   `json:"ended"`
	Error string `json:"error,omitempty"`
}

// Player moves on the revision that a Store has reached. Its methods may be called
// concurrently.
type Player struct {
	reader *recording.Reader
	cursor *recording.Cursor // of Run

	mu       sync.Mutex
	revision int64
	time     time.Time
	speed    float64
	paused   bool
	steps    int   // changes to go on although it is paused
	through  int64 // changes up to this revision are not waited for
	ended    bool
	err      error
	// The change recorded at recorded is due at wall; those after it by speed.
	wall, recorded time.Time
	moved          chan struct{} // closed when revision changes; nil if nothing waits
	controlled     chan struct{} // of length 1: receives when what Run waits for may have changed
}

// newPlayer returns a player at a revision, paused.
func newPlayer(r *recording.Reader, at int64) (*Player, error) {
	first, began := r.Start()
	last, _ := r.End()
	switch {
	case at == 0:
		at = first
	case at < first || at > last:
		return nil, fmt.Errorf("the recording has versions %d to %d, and not %d", first, last, at)
	}
	p := &Player{reader: r, cursor: r.After(at), revision: at, time: began, speed: 1, paused: true, controlled: make(chan struct{}, 1)}
	if at > first {
		p.time = timeOf(r, at)
	}
	return p, nil
}

// timeOf is when the last entry at or before a revision was recorded.
func timeOf(r *recording.Reader, at int64) time.Time {
	_, found := r.Start()
	for c := r.After(at - 1); ; {
		e, err := c.Next()
		if err != nil {
			return found
		}
		if e.Revision > at {
			if _, began := r.Start(); found.Equal(began) {
				return e.Time
			}
			return found
		}
		found = e.Time
	}
}

// Status returns what the player does.
func (p *Player) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Revision: p.revision, Time: p.time, Speed: p.speed, Paused: p.paused, Ended: p.ended}
	s.First, s.FirstTime = p.reader.Start()
	s.Last, s.LastTime = p.reader.End()
	if math.IsInf(s.Speed, 1) {
		s.Speed = 0
	}
	if p.err != nil {
		s.Error = p.err.Error()
	}
	return s
}

// Play goes on at a speed: 1 is as recorded, MaxSpeed without waiting.
func (p *Player) Play(speed float64) error {
	if !(speed > 0) {
		return fmt.Errorf("the speed %v is not above zero", speed)
	}
	p.control(func() { p.speed, p.paused, p.steps, p.through = speed, false, 0, 0 })
	return nil
}

// Resume goes on at the speed before Pause.
func (p *Player) Resume() { p.control(func() { p.paused, p.steps = false, 0 }) }

// Pause stops.
func (p *Player) Pause() { p.control(func() { p.paused, p.steps, p.through = true, 0, 0 }) }

// Step makes n changes at once, and pauses.
func (p *Player) Step(n int) { p.control(func() { p.paused, p.steps, p.through = true, max(n, 0), 0 }) }

// GoTo makes the changes up to a revision at once, and then goes on, or pauses, as
// before. A replay cannot go back: clients would not accept older versions.
func (p *Player) GoTo(revision int64) error {
	last, _ := p.reader.End()
	var err error
	p.control(func() {
		if revision < p.revision || revision > last {
			err = fmt.Errorf("the replay can go on to versions %d to %d, and not to %d", p.revision, last, revision)
			return
		}
		p.through = revision
	})
	return err
}

// control changes what Run does.
func (p *Player) control(change func()) {
	p.mu.Lock()
	change()
	p.wall, p.recorded = time.Now(), p.time
	p.mu.Unlock()
	select {
	case p.controlled <- struct{}{}:
	default:
	}
}

// Run makes the changes when they are due, until ctx ends. At the end of the recording
// it stays there; a damaged block is an end, too. It may be called once.
func (p *Player) Run(ctx context.Context) error {
	next, err := p.cursor.Next()
	for err == nil {
		if ctxErr := p.await(ctx, next); ctxErr != nil {
			return nil //nolint:nilerr // The end of ctx is no error.
		}
		// All changes of one revision are made together.
		group := next
		for next.Revision == group.Revision && err == nil {
			group = next
			next, err = p.cursor.Next()
		}
		p.advance(group)
	}
	p.mu.Lock()
	p.ended = true
	if !errors.Is(err, io.EOF) {
		p.err = err
	}
	p.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// advance makes the revision of an entry the current one.
func (p *Player) advance(e recording.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision, p.time = e.Revision, e.Time
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// await waits until an entry is due.
func (p *Player) await(ctx context.Context, e recording.Entry) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait, due := p.due(e)
		if due {
			return nil
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.controlled:
		case <-ctx.Done():
		}
	}
}

// due reports whether an entry is due, or how long it must wait.
func (p *Player) due(e recording.Entry) (wait time.Duration, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Revision <= p.through:
		// What follows is due from here on.
		p.wall, p.recorded = time.Now(), e.Time
		return 0, true
	case p.paused && p.steps > 0:
		if e.Type != recording.Progress && e.Type != recording.Gap {
			p.steps--
		}
		return 0, true
	case p.paused:
		return math.MaxInt64, false
	}
	wait = time.Until(p.wall.Add(time.Duration(float64(e.Time.Sub(p.recorded)) / p.speed)))
	return wait, wait <= 0
}

// current is the revision that has been reached.
func (p *Player) current() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.revision
}

// movedFrom returns the current revision, and, if it is not above another, a channel
// that is closed when it changes.
func (p *Player) movedFrom(revision int64) (int64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revision > revision {
		return p.revision, nil
	}
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	return p.revision, p.moved
}
