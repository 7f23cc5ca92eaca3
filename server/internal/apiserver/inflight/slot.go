package inflight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

const (
	// parkAfter is how long a write to a client may block before the request's slot is
	// given back.
	parkAfter = 100 * time.Millisecond
	// parkedPerSlot bounds the requests that have given their slots back: a blocked
	// answer still has its memory.
	parkedPerSlot = 4
)

// Slots are the requests of one kind that a server works on at the same time. It counts
// them, and bounds those that have given their slots back.
type Slots struct {
	inUse, waiting atomic.Int64
	parked         *Limiter
}

// NewSlots returns the slots of n requests.
func NewSlots(n int) *Slots { return &Slots{parked: New(parkedPerSlot * int64(n))} }

// InUse returns how many slots are taken.
func (s *Slots) InUse() int64 { return s.inUse.Load() }

// Waiting returns how many requests wait for a slot.
func (s *Slots) Waiting() int { return int(s.waiting.Load()) }

// Parked returns how many requests have given their slots back because their clients
// do not read.
func (s *Slots) Parked() int64 { return s.parked.InUse() }

type slotState uint8

const (
	free slotState = iota
	taken
	parked
)

// Slot is the slot of one request: its seats. The server takes it before it works on the
// request. Writes to the client are put between BeginWrite and EndWrite: while one
// blocks, the slot is given back, so that clients that do not read hold none. The
// goroutine that answers the request calls the methods.
type Slot struct {
	slots *Slots
	user  auth.User
	flow  fairqueue.Flow
	ctx   context.Context // the request's, for writes, which have none of their own
	task  *runqueue.Task  // the request's handler

	mu      sync.Mutex
	state   slotState
	hold    fairqueue.Hold // while the slot is taken
	writing bool
	timer   *time.Timer // parks the slot if a write takes long
}

// Slot returns a slot for a request of a user, which is not taken yet. ctx is the
// request's, and flow what the slot is taken for.
func (s *Slots) Slot(ctx context.Context, user auth.User, flow fairqueue.Flow) *Slot {
	return &Slot{slots: s, user: user, flow: flow, ctx: ctx, task: runqueue.FromContext(ctx)}
}

// Take takes the slot, after it has waited for it in a queue if there is one, and has the
// handler compute after what it waited for, such as the request's body. Its error is that of
// fairqueue.Flow.Acquire.
func (s *Slot) Take() error { return s.take(s.ctx, fairqueue.Flow.Acquire) }

// Wait is Take that is not refused, until ctx ends.
func (s *Slot) Wait(ctx context.Context) error { return s.take(ctx, fairqueue.Flow.Wait) }

func (s *Slot) take(ctx context.Context, acquire func(fairqueue.Flow, context.Context) (fairqueue.Hold, error)) error {
	s.task.Block()
	defer s.task.Unblock() // without s.mu
	s.slots.waiting.Add(1)
	hold, err := acquire(s.flow, ctx)
	s.slots.waiting.Add(-1)
	if err != nil {
		return err
	}
	s.slots.inUse.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
	if s.state == parked {
		s.slots.parked.Release(s.user, 1)
	}
	s.state = taken
	return nil
}

// giveBack gives the seats back. s.mu is held.
func (s *Slot) giveBack() {
	s.hold.Release()
	s.slots.inUse.Add(-1)
}

// Release gives the slot back, if it is taken, and ends the handler's task.
func (s *Slot) Release() {
	s.task.End()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case taken:
		s.giveBack()
	case parked:
		s.slots.parked.Release(s.user, 1)
	}
	s.state, s.writing = free, false
	if s.timer != nil {
		s.timer.Stop()
	}
}

// BeginWrite is called before a write that may block.
func (s *Slot) BeginWrite() {
	s.task.Block()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != taken {
		return
	}
	s.writing = true
	if s.timer == nil {
		s.timer = time.AfterFunc(parkAfter, s.park)
	} else {
		s.timer.Reset(parkAfter)
	}
}

// park gives the slot back during a write. If too many requests have done so, this one
// keeps it.
func (s *Slot) park() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == taken && s.writing && s.slots.parked.TryAcquire(s.user, 1) {
		s.state = parked
		s.giveBack()
	}
}

// EndWrite is called after the write. If the slot was given back, it waits for it, until
// the request ends.
func (s *Slot) EndWrite() error {
	defer s.task.Unblock()
	s.mu.Lock()
	s.writing = false
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.state != parked {
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.Wait(s.ctx) // it remains among the parked until then
}
