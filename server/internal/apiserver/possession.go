package apiserver

import "sync/atomic"

// possession says who may use an open watch: its request's goroutine, or, for
// as long as it takes to write what is ready, that which a wake-up has set
// off. It begins in the hands of the request's goroutine.
type possession struct {
	state atomic.Uint32
	// handed receives when the request's goroutine is given what it has asked
	// for, or what another cannot go on with. It has room for one: only the
	// holder sends, and holds no longer.
	handed chan struct{}
}

const (
	held   uint32 = iota
	again         // held, and there is more to do than the holder may have seen
	wanted        // held, and the request's goroutine waits for it
	free
)

func newPossession() possession { return possession{handed: make(chan struct{}, 1)} }

// claim takes what is free. If it is false, the holder has been told to look
// once more.
func (p *possession) claim() bool {
	for {
		switch p.state.Load() {
		case free:
			if p.state.CompareAndSwap(free, held) {
				return true
			}
		case held:
			if p.state.CompareAndSwap(held, again) {
				return false
			}
		default:
			return false
		}
	}
}

// release gives it back. If it is false, the caller still has it, and has to
// look once more.
func (p *possession) release() bool {
	for {
		switch p.state.Load() {
		case held:
			if p.state.CompareAndSwap(held, free) {
				return true
			}
		case again:
			if p.state.CompareAndSwap(again, held) {
				return false
			}
		default:
			p.handOver()
			return true
		}
	}
}

// handOver gives it to the request's goroutine.
func (p *possession) handOver() {
	p.state.Store(held)
	p.handed <- struct{}{}
}

// take waits until the request's goroutine, which calls it and must not have
// it, has it.
func (p *possession) take() {
	for {
		switch state := p.state.Load(); {
		case state == free:
			if p.state.CompareAndSwap(free, held) {
				return
			}
		case p.state.CompareAndSwap(state, wanted):
			<-p.handed
			// It may have been sent before it was asked for. Then nobody has been
			// told of what came since.
			p.state.CompareAndSwap(wanted, again)
			return
		}
	}
}
