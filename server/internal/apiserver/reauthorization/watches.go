package reauthorization

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Authorizer decides whether a right that was given still holds. It is called
// concurrently.
type Authorizer interface {
	// Reauthorize returns the Status for a client whose right was withdrawn, or nil if
	// the right holds. An error says that this could not be found out.
	Reauthorize(ctx context.Context, a auth.Attributes) (withdrawn, err error)
	// OnChange is as in auth.ChangeNotifier.
	OnChange(changed func(user string)) (stop func())
}

// Config is what Watches are made of.
type Config struct {
	Authorizer Authorizer   // required
	Logger     *slog.Logger // receives what operators should see; required
	// Ended is called with how many watches a withdrawn right has ended; nil: nothing.
	Ended func(watches int)
}

// Watches are the open watches of a server and the rights that they need. It is safe for
// concurrent use.
type Watches struct {
	config  Config
	changed chan struct{} // of length 1; receives when decisions may have changed
	running chan struct{} // of length 1; full while Run runs

	mu     sync.Mutex
	byHash map[uint64]*group // by the hash of their rights; those of one hash are linked
	groups []*group
	// byUser has the groups by the user whose watches they are, linked; under "", it has
	// those of impersonated users, which need rights of other users, too.
	byUser map[string]*group
	// changedUsers are the users whose groups the next pass decides about, if allChanged is
	// not set.
	changedUsers map[string]struct{}
	allChanged   bool
}

// group are the watches that need the same rights. Watches.mu guards its fields, but for
// the rights and the hash, which do not change.
type group struct {
	rights Rights
	hash   uint64
	next   *group // of the same hash
	index  int    // in Watches.groups

	userPrev, userNext *group // in Watches.byUser

	joins atomic.Uint64 // how many watches have joined; written while mu is held

	undecidedSince atomic.Int64 // in nanoseconds; 0: the last decision could be made

	first *Member
	// removed is set when the group is not in Watches any more. After that the list of its
	// members does not change.
	removed bool
	// withdrawn is the error for the clients once a right was withdrawn. It is written
	// before the watches are ended: the right of all ends at once.
	withdrawn atomic.Pointer[error]
}

// Watch is an open watch that can be ended.
type Watch interface {
	// Withdrawn has the watch end by the error that its Member's Err returns. It does not
	// block, and may be called while the watch ends by itself, or has ended.
	Withdrawn()
}

// Member is a watch's place in its group. The zero value is in none. It must not be copied
// once it is registered.
type Member struct {
	watch Watch
	group *group // is written by Register only

	prev, next *Member // guarded by Watches.mu until the group is removed
}

// Err returns the error for the client once a right of the watch was withdrawn; nothing
// else may be read for the client then. It is called after Register.
func (m *Member) Err() error {
	if m.group == nil {
		return nil
	}
	if reason := m.group.withdrawn.Load(); reason != nil {
		return *reason
	}
	return nil
}

// New returns Watches without any watch.
func New(config Config) *Watches {
	return &Watches{config: config, changed: make(chan struct{}, 1), running: make(chan struct{}, 1),
		byHash: map[uint64]*group{}, byUser: map[string]*group{}, changedUsers: map[string]struct{}{}}
}

// Register has watch ended when one of the rights is withdrawn, until Unregister. The
// rights held a moment ago: if they do not any more, the watch is ended before Register
// returns, or soon after. ctx bounds a decision, if one has to be made.
func (w *Watches) Register(ctx context.Context, m *Member, watch Watch, rights Rights) {
	g, added := w.join(m, watch, rights)
	if !added {
		return
	}
	switch withdrew, decided := w.decide(ctx, g); {
	case withdrew:
		w.end(g)
	case !decided:
		w.Changed("") // the next pass asks again
	}
}

func (w *Watches) join(m *Member, watch Watch, rights Rights) (g *group, added bool) {
	hash := rights.hash()
	w.mu.Lock()
	defer w.mu.Unlock()
	for g = w.byHash[hash]; g != nil && !g.rights.equal(&rights); {
		g = g.next
	}
	if g == nil {
		g = &group{rights: rights, hash: hash, next: w.byHash[hash], index: len(w.groups)}
		w.byHash[hash] = g
		w.groups = append(w.groups, g)
		user := g.user()
		if g.userNext = w.byUser[user]; g.userNext != nil {
			g.userNext.userPrev = g
		}
		w.byUser[user] = g
		added = true
	}
	*m = Member{watch: watch, group: g, next: g.first}
	if g.first != nil {
		g.first.prev = m
	}
	g.first = m
	g.joins.Add(1)
	return g, added
}

// Unregister forgets a watch that was registered, whether it was ended or not.
func (w *Watches) Unregister(m *Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := m.group
	if g == nil || g.removed {
		return // the right was withdrawn
	}
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		g.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	}
	if g.first == nil {
		w.remove(g)
	}
}

// remove forgets a group. mu is held.
func (w *Watches) remove(g *group) {
	g.removed = true
	last := len(w.groups) - 1
	w.groups[g.index] = w.groups[last]
	w.groups[g.index].index = g.index
	w.groups[last] = nil
	w.groups = w.groups[:last]

	if g.userNext != nil {
		g.userNext.userPrev = g.userPrev
	}
	switch {
	case g.userPrev != nil:
		g.userPrev.userNext = g.userNext
	case g.userNext != nil:
		w.byUser[g.user()] = g.userNext
	default:
		delete(w.byUser, g.user())
	}

	before := w.byHash[g.hash]
	switch {
	case before != g:
		for before.next != g {
			before = before.next
		}
		before.next = g.next
	case g.next != nil:
		w.byHash[g.hash] = g.next
	default:
		delete(w.byHash, g.hash)
	}
}

// user returns the key of the group in Watches.byUser.
func (g *group) user() string {
	if len(g.rights.Impersonation) > 0 {
		return ""
	}
	return g.rights.Watch.User.Name
}

// Groups returns how many different rights open watches need.
func (w *Watches) Groups() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.groups)
}
