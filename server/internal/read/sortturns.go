package read

import (
	"context"
	"sync"

	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// sortTurns has one list be sorted at a time: a million objects take memory meanwhile. Users take
// turns: of each, one request at most waits for those of others. It is safe for concurrent use.
//
// Lock order: the turn of a user, then all. mu is held for no wait.
type sortTurns struct {
	all chan struct{} // held while a list is sorted

	mu    sync.Mutex
	users map[string]*userTurn
}

// userTurn is held by that request of a user that waits for all, or sorts.
type userTurn struct {
	requests int // that hold it or wait for it; guarded by sortTurns.mu
	held     chan struct{}
}

func newSortTurns() *sortTurns {
	return &sortTurns{all: make(chan struct{}, 1), users: map[string]*userTurn{}}
}

// acquire waits until a request of a user may sort. The request's handler does not compute
// meanwhile.
func (t *sortTurns) acquire(ctx context.Context, user string) (release func(), err error) {
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	turn := t.join(user)
	select {
	case turn.held <- struct{}{}:
	case <-ctx.Done():
		t.leave(user, turn)
		return nil, ctx.Err()
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-turn.held
		t.leave(user, turn)
		return nil, ctx.Err()
	}
	return func() {
		<-t.all
		<-turn.held
		t.leave(user, turn)
	}, nil
}

func (t *sortTurns) join(user string) *userTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.users[user]
	if turn == nil {
		turn = &userTurn{held: make(chan struct{}, 1)}
		t.users[user] = turn
	}
	turn.requests++
	return turn
}

func (t *sortTurns) leave(user string, turn *userTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn.requests--; turn.requests == 0 {
		delete(t.users, user)
	}
}
