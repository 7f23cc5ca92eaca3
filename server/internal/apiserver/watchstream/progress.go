package watchstream

import (
	"net/http"
	"sync"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// ProgressHeader in the request of a watch gives it a name, which the client makes up. In the
// request of a list of the same resource it asks for a bookmark on that watch, sent after the
// state of the list was current: so the client knows that it has everything up to the list's
// version although nothing has changed. An answer that has the header, too, says that the bookmark
// is on its way. It is for relays: a consistent read of theirs costs the upstream one small
// request, and a frame.
const ProgressHeader = "Levelwire-Progress"

// NoProgress in ProgressHeader of an answer says that nothing brings the client to know how far its watch is, unless
// there is a change: a relay has passed the request on because its own upstream does not say so either. No watch has that name.
const NoProgress = "none"

// maxName bounds the name of a watch. A longer one is as if there were none.
const maxName = 64

// NameOf returns the name that a request gives to its watch, or "".
func NameOf(r *http.Request) string {
	if name := r.Header.Get(ProgressHeader); len(name) <= maxName {
		return name
	}
	return ""
}

// namedStreams finds the streams that have names.
type namedStreams struct {
	mu     sync.Mutex // no other lock is taken while it is held
	byName map[string]*Stream
}

// add adds a stream. If another one has the name, that one has it no longer.
func (n *namedStreams) add(t *Stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName == nil {
		n.byName = map[string]*Stream{}
	}
	n.byName[t.name] = t
}

func (n *namedStreams) remove(t *Stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName[t.name] == t {
		delete(n.byName, t.name)
	}
}

func (n *namedStreams) lookup(name string) *Stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}

// RequestProgress has a bookmark sent on the watch with a name, if it is one of the user and
// of the resource. It names what the cache has reached at the call, or more. It returns false
// if there is no such watch, or if it cannot be sent one at any time.
func (s *Streams) RequestProgress(name string, user auth.User, res *resource.Resource) bool {
	t := s.named.lookup(name)
	if t == nil || t.detachable == nil || t.record.User.Name != user.Name || t.record.Info == nil || t.record.Info.Resource != res {
		return false
	}
	t.signal(signalProgress)
	return true
}
