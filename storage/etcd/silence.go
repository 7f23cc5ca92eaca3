package etcd

import (
	"sync"
	"time"
)

// A member that is stopped, or cut off without a reset, says nothing on its watches, and only
// gRPC's pings would find that, after keepAliveTime and more. So a stream leaves a member that
// does not confirm the watch, or that says nothing while events or a progress notification
// are due. The next attempt mostly goes to another member.
const (
	// watchPatience is how long a member of a cluster may be silent when something is due,
	// and confirmPatience how long before it confirms a watch. Both are twice as long after
	// each member that was left in vain, up to maxWatchPatience, because all may be slow.
	watchPatience    = 2 * time.Second
	confirmPatience  = readPatience
	maxWatchPatience = 16 * time.Second
)

// silence is what a stream knows of a member that does not answer. Time counts only while
// Next waits for the member: a reader that does not read hears nothing either.
type silence struct {
	mu        sync.Mutex
	waits     time.Time // since when Next has waited; zero: it does not
	confirmed bool      // the member has said something on this watch
	left      int       // how many members were left, for their silence, since one has said more than that it confirms the watch
	failed    int       // those of them that had not confirmed the watch
}

// opened notes that the watch was requested of a member.
func (s *silence) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = false
}

// answered notes that the member has said something. A member that only confirms the
// watch may need long for the history after its start: another one would, too.
func (s *silence) answered(onlyConfirmed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed, s.failed = true, 0
	if !onlyConfirmed {
		s.left = 0
	}
}

// begin notes that Next waits for the member, until done is called. If the member has not
// confirmed the watch, it has to do so now.
func (s *silence) begin(st *stream) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := time.Now()
	s.waits = begun
	var timer *time.Timer
	if !s.confirmed {
		timer = time.AfterFunc(s.patience(), func() { s.end(st, begun) })
	}
	return func() {
		if timer != nil {
			timer.Stop()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waits = time.Time{}
	}
}

// patience is called with mu held.
func (s *silence) patience() time.Duration {
	if s.confirmed {
		return min(watchPatience<<min(s.left, 8), maxWatchPatience)
	}
	return min(confirmPatience<<min(s.failed, 8), maxWatchPatience)
}

// end hangs up if the member has said nothing for longer than it may, though something has
// been due since then.
func (s *silence) end(st *stream, due time.Time) {
	if st.store.embedded || !s.leave(due) {
		return
	}
	st.sending.Lock()
	defer st.sending.Unlock()
	if st.hangUp != nil {
		st.store.logger.Warn("etcd is silent on a watch, asking another member", "prefix", st.prefix, "after", st.reached.Load())
		st.hangUp()
	}
}

// leave reports whether the member is to be left, and counts it.
func (s *silence) leave(due time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits.IsZero() || min(time.Since(s.waits), time.Since(due)) < s.patience() {
		return false
	}
	if !s.confirmed {
		s.failed++
	} else {
		s.left++
	}
	return true
}
