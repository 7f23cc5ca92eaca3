package watchstream

import "sync/atomic"

// ownership says which goroutine may use an open stream: the request's, or, for
// as long as it takes to write what is ready, the one that a wake-up has set off.
// The request's goroutine owns it at first.
type ownership struct {
	state atomic.Uint32
	// handedOff receives when the request's goroutine becomes the owner, because it
	// waits for that or because another goroutine hands the stream off. It has room
	// for one: only the owner sends, and is no longer the owner then.
	handedOff chan struct{}
}

// The states of an ownership.
const (
	owned     uint32 = iota
	ownedWake        // owned, and there is more to do than the owner may have seen
	ownedWait        // owned, and the request's goroutine waits for it
	unowned
)

func newOwnership() ownership { return ownership{handedOff: make(chan struct{}, 1)} }

// tryAcquire makes the caller the owner if there is none. If it returns false, the
// present owner will look at the stream once more.
func (o *ownership) tryAcquire() bool {
	for {
		switch o.state.Load() {
		case unowned:
			if o.state.CompareAndSwap(unowned, owned) {
				return true
			}
		case owned:
			if o.state.CompareAndSwap(owned, ownedWake) {
				return false
			}
		default:
			return false
		}
	}
}

// tryBorrow makes the caller the owner if there is none, for a moment: it does not block, and
// calls release. Unlike tryAcquire, it leaves no mark otherwise.
func (o *ownership) tryBorrow() bool { return o.state.CompareAndSwap(unowned, owned) }

// release gives the ownership up. If it returns false, the caller is still the
// owner and must look at the stream once more.
func (o *ownership) release() bool {
	for {
		switch o.state.Load() {
		case owned:
			if o.state.CompareAndSwap(owned, unowned) {
				return true
			}
		case ownedWake:
			if o.state.CompareAndSwap(ownedWake, owned) {
				return false
			}
		default:
			o.handoff()
			return true
		}
	}
}

// handoff makes the request's goroutine the owner.
func (o *ownership) handoff() {
	o.state.Store(owned)
	o.handedOff <- struct{}{}
}

// acquire blocks until the caller, the request's goroutine, is the owner. It must
// not be the owner already.
func (o *ownership) acquire() {
	for {
		switch state := o.state.Load(); {
		case state == unowned:
			if o.state.CompareAndSwap(unowned, owned) {
				return
			}
		case o.state.CompareAndSwap(state, ownedWait):
			<-o.handedOff
			// The handoff may have been sent before this goroutine began to wait. Wake-ups
			// since then found the state ownedWait and left no mark.
			o.state.CompareAndSwap(ownedWait, ownedWake)
			return
		}
	}
}
