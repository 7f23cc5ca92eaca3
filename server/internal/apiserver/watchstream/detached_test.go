package watchstream

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// endings is an answer that counts how it was ended.
type endings struct {
	pushed
	complete, broken int
}

func (*endings) Detach(interface{ Gone() }) bool { return true }
func (e *endings) End(complete bool) {
	if complete {
		e.complete++
	} else {
		e.broken++
	}
}

// TestPanicsEndOneWatch: a watch that panics, and panics again when it is ended because of
// that, breaks off its answer and nothing else.
func TestPanicsEndOneWatch(t *testing.T) {
	things := newThing()
	cache := watchcache.New(things, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	stream := openStream(t, oneResource{things}, cache, things, encoding.Form{}, nil)
	answer, ended := &endings{}, 0
	stream.detachable, stream.ended, stream.opened = answer, func() { ended++ }, true
	opened := stream.watch
	stream.watch = read.Watch{} // which panics
	stream.signals.Or(signalStopping)
	stream.work()
	stream.watch = opened // it is closed at the end of the test
	if answer.complete != 0 || answer.broken != 1 || ended != 1 {
		t.Errorf("the answer was ended %d times as complete and %d times broken off, the request %d times", answer.complete, answer.broken, ended)
	}
}
