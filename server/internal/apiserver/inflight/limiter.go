package inflight

import (
	"sync"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// shareOfFree is how many times what is free one user may hold. A user alone gets three
// quarters of a Limiter; k users that want as much as they can get have equal parts,
// and leave a third of such a part free. So a user that comes next gets something at
// once, and no share lies idle for users that are not there.
const shareOfFree = 3

// Limiter bounds something that requests hold, such as bytes. Administrators,
// the group system:masters, have as much again for themselves: other users cannot
// starve them. It is safe for concurrent use.
type Limiter struct {
	capacity int64
	perUser  int64 // how much one user but administrators may hold besides; 0: no limit

	mu             sync.Mutex
	users, masters pool
}

// pool is what users, or administrators, hold of a Limiter.
type pool struct {
	used    int64
	holders map[string]*holder // by user's name, also of some that hold nothing
}

// holder is one user.
type holder struct{ held int64 }

// New returns a Limiter of which nothing is held.
func New(capacity int64) *Limiter { return NewPerUser(capacity, 0) }

// NewPerUser returns a Limiter of which one user but administrators may hold so much, if its
// share is not less.
func NewPerUser(capacity, perUser int64) *Limiter {
	return &Limiter{capacity: capacity, perUser: perUser, users: newPool(), masters: newPool()}
}

func newPool() pool { return pool{holders: make(map[string]*holder)} }

func (l *Limiter) poolOf(user auth.User) *pool {
	if user.In(auth.Masters) {
		return &l.masters
	}
	return &l.users
}

func (p *pool) holderOf(name string) *holder {
	h := p.holders[name]
	if h == nil {
		h = &holder{}
		p.holders[name] = h
	}
	return h
}

// maxIdle is how many users are remembered although they may hold nothing: forgetting
// one costs more than most of its requests need of this package.
const maxIdle = 1024

func (p *pool) forgetIdle(name string, h *holder) {
	if h.held == 0 && len(p.holders) > maxIdle {
		delete(p.holders, name)
	}
}

// admits reports whether a user may hold n more. l.mu is held.
func (l *Limiter) admits(p *pool, h *holder, n int64) bool {
	free := l.capacity - p.used - n
	if free < 0 || p == &l.users && l.perUser > 0 && h.held+n > l.perUser {
		return false
	}
	return h.held == 0 || p == &l.masters || h.held+n <= shareOfFree*free
}

// TryAcquire takes n for a user if that much is free and the user's share allows it.
func (l *Limiter) TryAcquire(user auth.User, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.poolOf(user)
	h := p.holderOf(user.Name)
	defer p.forgetIdle(user.Name, h)
	if !l.admits(p, h, n) {
		return false
	}
	h.held += n
	p.used += n
	return true
}

// Release gives back what TryAcquire has taken.
func (l *Limiter) Release(user auth.User, n int64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.poolOf(user)
	h := p.holderOf(user.Name)
	h.held -= n
	p.used -= n
	p.forgetIdle(user.Name, h)
}

// InUse returns how much is held at the moment, by administrators and all others.
func (l *Limiter) InUse() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.users.used + l.masters.used
}

// Capacity returns how much all users but administrators can hold together.
func (l *Limiter) Capacity() int64 { return l.capacity }
