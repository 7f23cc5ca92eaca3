package reauthorization

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	// minPause is the least time between two passes, so that changes in quick succession
	// share one. maxPause is the most: pauses must not let a right outlive its withdrawal
	// by a second.
	minPause = 20 * time.Millisecond
	maxPause = 400 * time.Millisecond
	// pausePerPass is how many times as long as a pass the pause after it is, until maxPause
	// is reached: passes take at most a fifth of a processor. A pass that takes longer than
	// maxPause is followed by a pause of its length.
	pausePerPass = 4
	// A pass gets one more worker when it made fewer than fewDecisions in a checkEvery.
	// Decisions from memory take microseconds, and more workers would take more processors;
	// those of a webhook wait for it.
	checkEvery   = 5 * time.Millisecond
	fewDecisions = 5
	maxWorkers   = 32
	// askAgain is when a decision that could not be made is asked for again.
	askAgain = time.Second
	// maxUndecided is for how long a right holds although whether it does cannot be found
	// out, as long as webhooks' permissions are cached by default. New requests fail all
	// the while.
	maxUndecided = 5 * time.Minute
)

// maxChangedUsers is how many users are kept whose rights may have changed: if there are
// more, all groups are decided again.
const maxChangedUsers = 10_000

// Changed has the groups of a user decided again, or all if user is "". It does not wait
// for a pass.
func (w *Watches) Changed(user string) {
	w.mu.Lock()
	switch {
	case w.allChanged:
	case user == "" || len(w.changedUsers) == maxChangedUsers:
		w.allChanged = true
		clear(w.changedUsers)
	case w.byUser[user] == nil && w.byUser[""] == nil:
		w.mu.Unlock()
		return // a watch that opens now is decided about then
	default:
		w.changedUsers[user] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run makes passes after changes until ctx ends. If it is called several times, one of the
// calls does that.
func (w *Watches) Run(ctx context.Context) {
	select {
	case w.running <- struct{}{}:
		defer func() { <-w.running }()
	case <-ctx.Done():
		return
	}
	stop := w.config.Authorizer.OnChange(w.Changed)
	if stop == nil {
		return
	}
	defer stop()
	w.Changed("") // there may have been a change before
	timer := time.NewTimer(askAgain)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-w.changed:
		case <-timer.C:
			w.Changed("")
		case <-ctx.Done():
			return
		}
		start := time.Now()
		undecided := w.pass(ctx, w.takeChanged())
		took := time.Since(start)
		pause(ctx, min(max(minPause, pausePerPass*took), max(maxPause, took)))
		if undecided > 0 {
			w.config.Logger.Warn("whether open watches are still allowed could not be found out: they go on, and it is asked again",
				"rights", undecided)
			timer.Reset(askAgain)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// withdrawals are the groups that a pass has withdrawn and whose watches are not ended yet.
// Nothing is sent on these any more. So all decisions come first: it is work to end
// thousands of watches, and the other groups' would be sent events meanwhile.
type withdrawals struct {
	mu     sync.Mutex
	groups []*group
}

func (l *withdrawals) add(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups = append(l.groups, g)
}

func (l *withdrawals) take() []*group {
	l.mu.Lock()
	defer l.mu.Unlock()
	groups := l.groups
	l.groups = nil
	return groups
}

// pass decides about groups, and returns about how many it could not. One worker does
// that, and more only while decisions have to be waited for.
func (w *Watches) pass(ctx context.Context, groups []*group) (undecided int64) {
	var taken, failed atomic.Int64
	var withdrawn withdrawals
	end := func() {
		for _, g := range withdrawn.take() {
			w.end(g)
		}
	}
	defer end()
	finished := make(chan struct{}, maxWorkers)
	work := func() {
		defer func() { finished <- struct{}{} }()
		for ctx.Err() == nil {
			i := taken.Add(1) - 1
			if i >= int64(len(groups)) {
				return
			}
			g := groups[i]
			switch ended, decided := w.decide(ctx, g); {
			case ended:
				withdrawn.add(g)
			case !decided:
				failed.Add(1)
			}
		}
	}
	go work()
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	before := int64(0)
	for started, running := 1, 1; running > 0; {
		select {
		case <-finished:
			running--
			continue
		case <-ticker.C:
		}
		end()
		now := taken.Load()
		if now-before < fewDecisions && now < int64(len(groups)) && started < maxWorkers {
			started++
			running++
			go work()
		}
		before = now
	}
	return failed.Load()
}

// takeChanged returns the groups whose rights may have changed since the last call.
func (w *Watches) takeChanged() []*group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allChanged {
		w.allChanged = false
		return slices.Clone(w.groups)
	}
	if len(w.changedUsers) == 0 {
		return nil
	}
	var groups []*group
	w.changedUsers[""] = struct{}{} // an impersonated user has several
	for user := range w.changedUsers {
		for g := w.byUser[user]; g != nil; g = g.userNext {
			groups = append(groups, g)
		}
	}
	clear(w.changedUsers)
	return groups
}

var errPanicked = errors.New("the authorizer panicked")

// decide asks for the rights of a group, and withdraws it if one was withdrawn: the caller
// must call end then. It returns false if that could not be found out.
func (w *Watches) decide(ctx context.Context, g *group) (withdrew, decided bool) {
	for {
		joins := g.joins.Load()
		withdrawn, err := w.ask(ctx, &g.rights)
		if withdrawn == nil {
			withdrawn = g.overdue(err)
		}
		if withdrawn == nil {
			return false, err == nil
		}
		if w.withdraw(g, joins, withdrawn) {
			return true, true
		}
	}
}

// overdue returns the error for the client if err says for maxUndecided already that
// there is no decision.
func (g *group) overdue(err error) error {
	if err == nil {
		g.undecidedSince.Store(0)
		return nil
	}
	now := time.Now().UnixNano()
	if g.undecidedSince.CompareAndSwap(0, now) || time.Duration(now-g.undecidedSince.Load()) < maxUndecided {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("whether the request is still allowed could not be found out for %v: %v", maxUndecided, err))
}

// ask returns the first of the rights that was withdrawn, as the error for the client. A
// panic of the authorizer decides nothing.
func (w *Watches) ask(ctx context.Context, rights *Rights) (withdrawn, err error) {
	defer func() {
		if r := recover(); r != nil {
			w.config.Logger.Error("an authorizer panicked", "panic", r, "stack", string(debug.Stack()))
			withdrawn, err = nil, errPanicked
		}
	}()
	if withdrawn, err := w.askAlternatives(ctx, rights.Impersonation); withdrawn != nil || err != nil || rights.Filtered {
		return withdrawn, err
	}
	return w.config.Authorizer.Reauthorize(ctx, *rights.Watch)
}

// askAlternatives returns nil if one of the alternatives, or none, is needed and all its
// rights are given. Otherwise it returns the error for the client by the first of them.
func (w *Watches) askAlternatives(ctx context.Context, alternatives []iter.Seq[auth.Attributes]) (withdrawn, err error) {
	for _, rights := range alternatives {
		refused, failed := w.askAll(ctx, rights)
		if refused == nil && failed == nil {
			return nil, nil
		}
		if withdrawn == nil {
			withdrawn = refused
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, err // an alternative may hold
	}
	return withdrawn, nil
}

func (w *Watches) askAll(ctx context.Context, rights iter.Seq[auth.Attributes]) (withdrawn, err error) {
	for right := range rights {
		if withdrawn, err := w.config.Authorizer.Reauthorize(ctx, right); withdrawn != nil || err != nil {
			return withdrawn, err
		}
	}
	return nil, nil
}

// withdraw removes a group and has its watches get no more events, unless more have joined
// it since there were joins.
func (w *Watches) withdraw(g *group, joins uint64, reason error) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.joins.Load() != joins {
		return false
	}
	if !g.removed {
		w.remove(g)
		g.withdrawn.Store(&reason)
	}
	return true
}

// end ends the watches of a group that was removed.
func (w *Watches) end(g *group) {
	withdrawn := g.withdrawn.Load()
	if withdrawn == nil {
		return // they had ended by themselves
	}
	watches := 0
	for m := g.first; m != nil; m = m.next {
		m.watch.Withdrawn()
		watches++
	}
	w.config.Logger.Info("ended watches because a right was withdrawn", "user", g.rights.Watch.User.Name, "watches", watches, "reason", *withdrawn)
	if w.config.Ended != nil {
		w.config.Ended(watches)
	}
}
