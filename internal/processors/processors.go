// Package processors gives Go more processors while work computes for long.
//
// Go interrupts a goroutine that computes only after 10 ms, so on two processors two
// requests that compute, such as a definition and a JSON patch, keep everything else waiting
// for that long: at each of the ten goroutines that a write passes until its event is sent.
// With more of Go's processors than the machine has, a goroutine that becomes ready finds one
// that is free, and the system shares the machine among the threads: it prefers one that has
// just woken to those that compute. Without such work the additional threads would cost
// 10 to 20 % of the processor time that a watch's event takes, so they are there only
// meanwhile.
package processors

import (
	"runtime"
	"sync"
	"time"
)

// lowerAfter is how long after the last such work GOMAXPROCS is lowered again. A change
// stops all goroutines for some microseconds.
const lowerAfter = time.Second

// state belongs to the process, as GOMAXPROCS does.
var state struct {
	sync.Mutex
	least     int // GOMAXPROCS while work computes; 0: it is never changed
	raised    bool
	computing int
	lower     *time.Timer
}

// Spare has Go use at least this many processors while work computes, until stop is called.
// Otherwise Go chooses their number: it is for programs where the user has not.
func Spare(least int) (stop func()) {
	state.Lock()
	defer state.Unlock()
	state.least = least
	return func() {
		state.Lock()
		defer state.Unlock()
		state.least = 0
		restore()
	}
}

// Computing says that the caller computes for some milliseconds or more, until it calls done.
// It is safe for concurrent use.
func Computing() (done func()) {
	state.Lock()
	defer state.Unlock()
	state.computing++
	if !state.raised && runtime.GOMAXPROCS(0) < state.least {
		state.raised = true
		runtime.GOMAXPROCS(state.least)
	}
	return func() {
		state.Lock()
		defer state.Unlock()
		if state.computing--; state.computing > 0 || !state.raised {
			return
		}
		if state.lower == nil {
			state.lower = time.AfterFunc(lowerAfter, lowerUnused)
			return
		}
		state.lower.Reset(lowerAfter)
	}
}

func lowerUnused() {
	state.Lock()
	defer state.Unlock()
	if state.computing == 0 {
		restore()
	}
}

// restore has Go choose, and follow the limit of the container again. It needs the lock.
func restore() {
	if state.raised {
		runtime.SetDefaultGOMAXPROCS()
		state.raised = false
	}
}
