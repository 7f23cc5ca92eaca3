package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/informer"
)

// versioned is an informer of a controller.
type versioned interface {
	LastSyncResourceVersion() string
	CatchUp(ctx context.Context, version string) error
}

// newestShower is a versioned whose cache may show changes after LastSyncResourceVersion.
type newestShower interface {
	NewestResourceVersion() string
}

// shown is what each informer of a controller showed at one moment. It is immutable.
type shown []showing

type showing struct {
	by      *Registration
	version string // up to which it showed everything
	// newest is of what it showed. The handler of a change is called, and a call reads it, before version says so.
	newest string
}

func showingOf(by *Registration) showing {
	s := showing{by: by, version: by.informer.LastSyncResourceVersion()}
	s.newest = s.version
	other, ok := by.informer.(newestShower)
	if ok && reaches(s.version, s.version) { // otherwise there is nothing to compare
		s.newest = newest(s.version, other.NewestResourceVersion())
	}
	return s
}

// required is what a call has to have read. The controller's mu guards own and objects.
type required struct {
	shown   shown  // when the key first asked after it was woken; nil: it has not
	own     string // the controller's newest write before the call, or one of it
	objects map[types.UID]requiredObject
	since   uint64 // the controller's caughtUp when it was made
}

// renew has it include what has woken the key since.
func (q *required) renew(written string) {
	q.shown, q.objects, q.own = nil, nil, newest(q.own, written)
}

// requiredObject is an object as it was when it was first asked about.
type requiredObject struct {
	version    string
	generation int64
	deleted    bool
}

// add adds an object, unless it was asked about before and only its status, say, has changed since:
// under steady change the key would never be reconciled.
func (q *required) add(obj metav1.Object) {
	now := requiredObject{obj.GetResourceVersion(), obj.GetGeneration(), obj.GetDeletionTimestamp() != nil}
	before, ok := q.objects[obj.GetUID()]
	if ok && before.generation == now.generation && before.deleted == now.deleted {
		return
	}
	if q.objects == nil {
		q.objects = map[types.UID]requiredObject{}
	}
	q.objects[obj.GetUID()] = now
	q.own = newest(q.own, now.version)
}

// catchUp is informers on their way to versions. c.mu guards targets until it runs, and keys.
type catchUp[K comparable] struct {
	targets map[*Registration]target
	keys    map[K]struct{} // that are reconciled again at the end
	begun   time.Time
	done    chan struct{} // closed at the end, with c.mu held
}

func newCatchUp[K comparable](targets map[*Registration]target) *catchUp[K] {
	return &catchUp[K]{targets: targets, keys: map[K]struct{}{}, begun: time.Now(), done: make(chan struct{})}
}

// target is the version that an informer is to show.
type target struct {
	version string
	// from is the informer that shows it, and nil if it is of a write or of an object.
	from *Registration
}

// raise makes it another one that is newer, unless that cannot be compared with the versions of an informer.
func (t *target) raise(to target, of *Registration, now time.Time) {
	if to.version != "" && !of.isForeign(to.from, now) && newest(t.version, to.version) != t.version {
		*t = to
	}
}

const (
	// catchUpTimeout is for how long informers are waited for before the keys that wait for
	// them are looked at again: some may need others now, and others may have caught up.
	catchUpTimeout = 30 * time.Second
	// catchUpRetry is after what time they are, then and after a failure.
	catchUpRetry = time.Second
	// catchUpsMost is how often informers catch up before what wakes a key that waits counts no more:
	// one that is woken all the time would never be reconciled.
	catchUpsMost = 3
)

// foreignFor is for how long it is remembered that versions of two informers cannot be compared:
// a server whose storage was restored has lower ones for a while.
const foreignFor = 10 * time.Minute

// beginCall notes what the informers show, before the ReconcileFunc reads anything. The call takes the place
// of one that a catchUp would have led to.
func (c *TypedController[K]) beginCall(key K) *consistentCall[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := &consistentCall[K]{controller: c, key: key, began: c.shown()}
	woken := c.wakes.begin(key)
	before, ok := c.putOff[key]
	switch {
	case !ok:
		call.required = &required{own: c.written, since: c.caughtUp}
		return call
	case woken && c.caughtUp-before.since < catchUpsMost:
		before.renew(c.written)
	}
	call.required = before
	delete(c.putOff, key)
	for _, u := range c.catchUps() {
		delete(u.keys, key)
	}
	return call
}

// catchUps returns those that have not ended. c.mu is held.
func (c *TypedController[K]) catchUps() (all []*catchUp[K]) {
	for _, u := range []*catchUp[K]{c.catchingUp, c.catchUpNext} {
		if u != nil {
			all = append(all, u)
		}
	}
	return all
}

// shown returns what the informers show now. c.mu is held.
func (c *TypedController[K]) shown() shown {
	all := make(shown, 0, len(c.sources))
	for _, r := range c.sources {
		if r.informer != nil {
			all = append(all, showingOf(r))
		}
	}
	return all
}

// behind returns what has to end before a call can read everything that it has to, a version included; nil if it has.
func (c *TypedController[K]) behind(call *consistentCall[K], version string, objs []metav1.Object) *catchUp[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != running {
		return nil
	}
	if call.required.shown == nil {
		// One informer may have moved on during the call, and the ReconcileFunc may have read that. What
		// has woken the key by now is shown.
		c.wakes.clear(call.key)
		call.required.shown = c.shown()
	}
	call.required.own = newest(call.required.own, version)
	targets := c.targets(call, objs)
	if len(targets) == 0 {
		return nil
	}
	switch {
	case c.catchingUp == nil:
		c.catchingUp = newCatchUp[K](targets)
		c.pursue(c.catchingUp)
	case c.catchingUp.includes(targets):
	case c.catchUpNext == nil:
		c.catchUpNext = newCatchUp[K](targets)
		return c.catchUpNext
	default:
		c.catchUpNext.add(targets)
		return c.catchUpNext
	}
	return c.catchingUp
}

// targets returns the informers that were behind when a call began, and the version that each has
// to show. c.mu is held.
func (c *TypedController[K]) targets(call *consistentCall[K], objs []metav1.Object) map[*Registration]target {
	for _, obj := range objs {
		call.required.add(obj)
	}
	now := time.Now()
	var behind map[*Registration]target
	for _, read := range call.began {
		if !reaches(read.version, read.version) {
			continue // there is nothing to compare
		}
		var to target
		to.raise(target{version: call.required.own}, read.by, now)
		to.raise(c.least, read.by, now)
		for _, other := range call.required.shown {
			wanted := other.newest
			if other.by == read.by {
				wanted = other.version // its own changes are not compared with each other
			}
			to.raise(target{wanted, other.by}, read.by, now)
		}
		if to.version == "" || reaches(read.version, to.version) {
			continue
		}
		if behind == nil {
			behind = map[*Registration]target{}
		}
		behind[read.by] = to
	}
	return behind
}

// includes reports whether targets are reached with those of u.
func (u *catchUp[K]) includes(targets map[*Registration]target) bool {
	for r, to := range targets {
		if mine, ok := u.targets[r]; !ok || !reaches(mine.version, to.version) {
			return false
		}
	}
	return true
}

// add adds targets to those of u, which does not run yet.
func (u *catchUp[K]) add(targets map[*Registration]target) {
	for r, to := range targets {
		if mine, ok := u.targets[r]; !ok || !reaches(mine.version, to.version) {
			u.targets[r] = to
		}
	}
}

// pursue runs u, and after it what has been wanted meanwhile. c.mu is held, and the controller
// runs.
func (c *TypedController[K]) pursue(u *catchUp[K]) {
	c.serving.Go(func() {
		ctx, cancel := context.WithTimeout(c.lifetime, catchUpTimeout)
		defer cancel()
		slow := time.AfterFunc(slowStart, func() { c.logBehind(u) })
		var informers sync.WaitGroup
		for r, to := range u.targets {
			informers.Go(func() { c.reach(ctx, r, to) })
		}
		informers.Wait()
		slow.Stop()
		c.counts.waited.observe(time.Since(u.begun))
		c.endCatchUp(u)
	})
}

// reach returns when an informer shows a version, or never will.
func (c *TypedController[K]) reach(ctx context.Context, r *Registration, to target) {
	err := r.informer.CatchUp(ctx, to.version)
	switch {
	case errors.Is(err, informer.ErrOtherVersions):
		c.setForeign(ctx, r, to, err)
	case errors.Is(err, informer.ErrStopped):
		c.end(r.failed(errSourceEnded)) // nobody knows any more what is not there
	}
}

// setForeign notes that a version is none of an informer's server. It warns the first time: that of an aggregated server stays
// so, and one that was restored does not.
func (c *TypedController[K]) setForeign(ctx context.Context, r *Registration, to target, err error) {
	c.mu.Lock()
	_, known := r.foreign[to.from]
	r.foreign[to.from] = time.Now().Add(foreignFor)
	c.mu.Unlock()
	level, from := slog.LevelWarn, "a write, or an object"
	if known {
		level = slog.LevelDebug
	}
	if to.from != nil {
		from = to.from.name
	}
	c.opts.Logger.Log(ctx, level, "versions cannot be compared, so the controller does not wait for this informer: does its resource have another storage, or was the storage restored?",
		"informer", r.name, "wanted", to.version, "from", from, "comparedAgainAfter", foreignFor, "error", err)
}

// putKeyOff has a key reconciled again once informers have caught up.
func (c *TypedController[K]) putKeyOff(key K, behind behindError) {
	c.counts.putOffs.Add(1)
	wait := behind.wait.(*catchUp[K])
	c.mu.Lock()
	c.putOff[key] = behind.required
	late := isClosed(wait.done)
	if !late {
		wait.keys[key] = struct{}{}
	}
	c.mu.Unlock()
	if late {
		c.queue.Add(key)
	}
}

// endCatchUp has the keys that were put off reconciled again.
func (c *TypedController[K]) endCatchUp(u *catchUp[K]) {
	c.mu.Lock()
	close(u.done)
	if c.catchingUp, c.catchUpNext = c.catchUpNext, nil; c.catchingUp != nil {
		if c.phase == running {
			c.pursue(c.catchingUp)
		} else {
			close(c.catchingUp.done)
		}
	}
	late := c.lacks(u)
	if !late {
		c.caughtUp++
	}
	c.mu.Unlock()
	for key := range u.keys { // with c.queue: that wakes none
		if late {
			c.queue.AddAfter(key, catchUpRetry)
		} else {
			c.queue.Add(key)
		}
	}
}

// lacks reports whether an informer has not caught up, and might have. c.mu is held.
func (c *TypedController[K]) lacks(u *catchUp[K]) bool {
	now := time.Now()
	for r, to := range u.targets {
		if !r.isForeign(to.from, now) && !reaches(r.informer.LastSyncResourceVersion(), to.version) {
			return true
		}
	}
	return false
}

// keysPutOff counts the keys that wait for informers.
func (c *TypedController[K]) keysPutOff() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.catchUps() {
		n += len(u.keys)
	}
	return n
}

// logBehind says which informers keep keys waiting.
func (c *TypedController[K]) logBehind(u *catchUp[K]) {
	for r, to := range u.targets {
		if shown := r.informer.LastSyncResourceVersion(); !reaches(shown, to.version) {
			c.opts.Logger.Warn("the controller decides nothing that needs a consistent view until an informer has caught up: can its resource be watched?",
				"informer", r.name, "resourceVersion", shown, "wanted", to.version, "waited", slowStart)
		}
	}
}

// isForeign reports whether an informer's versions were found to be others than those of another
// one, or of writes and objects (nil). c.mu is held.
func (r *Registration) isForeign(other *Registration, now time.Time) bool {
	until, ok := r.foreign[other]
	return ok && now.Before(until)
}
