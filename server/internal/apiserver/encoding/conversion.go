package encoding

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

const (
	// convertAtOnce is how many objects one call of a webhook is asked to convert at
	// most.
	convertAtOnce = 500
	// maxConversionWaiters bounds the gets and lists that wait for the webhook of one
	// definition. Each holds one of the server's slots for reads, so that a webhook
	// that hangs would otherwise stop the reads of all resources. Watches hold no slot.
	maxConversionWaiters = 200
	unlimited            = 0
)

// conversion is one call of a webhook for some objects. It runs in a goroutine of
// its own, for as long as a reader waits for it and its webhook's timeout allows.
type conversion struct {
	encoder Encoder
	objects []*watchcache.Object
	cancel  context.CancelFunc
	waiters int // guarded by conversions.mu

	done chan struct{}
	// The results, set before done is closed: the JSON of objects in their order, or
	// the error, or what made the call panic.
	shown    [][]byte
	err      error
	panicked string
}

// conversionKey is one form of one object.
type conversionKey struct {
	object     *watchcache.Object
	form       watchcache.FormID
	generation uint64
}

// conversions are the calls that are under way. Nothing is called while mu is held.
type conversions struct {
	mu      sync.Mutex
	calls   map[conversionKey]*conversion
	waiters map[*resource.Resource]int // by stored resource: the readers that count against the limit
}

// underWay has the calls of all encoders: they share objects and forms.
var underWay = conversions{calls: map[conversionKey]*conversion{}, waiters: map[*resource.Resource]int{}}

// Prepare has a webhook convert many objects with few calls, if the resource needs
// one. Gets and lists that wait for the same objects share a call. Too many that
// wait for one definition's webhook are refused with 429.
func (p Encoder) Prepare(ctx context.Context, objects iter.Seq[*watchcache.Object]) error {
	return p.prepare(ctx, maxConversionWaiters, objects)
}

// prepare is Prepare with a limit of readers that wait; unlimited for watches.
func (p Encoder) prepare(ctx context.Context, limit int, objects iter.Seq[*watchcache.Object]) error {
	if p.res.FromStorageBatch == nil {
		return nil
	}
	var batch []*watchcache.Object
	var scratch []byte
	for o := range objects {
		if o.HasForm(p.ids.shown, p.res.Generation) || p.asStored(o, o.ReadJSON(&scratch)) {
			continue
		}
		if batch = append(batch, o); len(batch) == convertAtOnce {
			if _, err := p.convert(ctx, limit, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if len(batch) == 0 {
		return nil
	}
	_, err := p.convert(ctx, limit, batch)
	return err
}

// converted returns what a webhook makes of an object; nothing if that is what is stored.
func (p Encoder) converted(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	shown, err := o.FormAt(p.ids.shown, p.res.Generation, func(*watchcache.Object) ([]byte, error) { return nil, errNotConverted })
	if err == nil {
		return shown, nil
	}
	made, err := p.convert(ctx, maxConversionWaiters, []*watchcache.Object{o})
	return made[o], err
}

// errNotConverted means that no reader has left an answer of the webhook yet.
var errNotConverted = errors.New("the object has not been converted")

// convert returns the JSON of a batch of objects, as converted does, and caches it with them. It
// waits for the calls under way that convert some of them, and starts one for the
// others, until ctx ends at most.
func (p Encoder) convert(ctx context.Context, limit int, batch []*watchcache.Object) (map[*watchcache.Object][]byte, error) {
	if !underWay.enter(p.res.Storage, limit) {
		return nil, status.TooManyRequests(fmt.Sprintf("too many requests wait for the conversion webhook of %s", p.res.GroupResource()), 1)
	}
	defer underWay.exit(p.res.Storage, limit)
	made := make(map[*watchcache.Object][]byte, len(batch))
	failed, err := p.await(ctx, made, batch, false)
	if len(failed) > 0 && err == nil {
		_, err = p.await(ctx, made, failed, true) // another object of the same call may be at fault
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// await waits for the calls that convert a batch, and adds their results to made. It
// returns the objects whose calls failed and converted objects that are not in the
// batch. alone has it wait for no calls that others have started for several objects.
func (p Encoder) await(ctx context.Context, made map[*watchcache.Object][]byte, batch []*watchcache.Object, alone bool) (failed []*watchcache.Object, err error) {
	calls := underWay.join(ctx, p, made, batch, alone)
	defer underWay.leave(calls)
	wanted := make(map[*watchcache.Object]bool, len(batch))
	for _, o := range batch {
		wanted[o] = true
	}
	foreign := func(o *watchcache.Object) bool { return !wanted[o] }
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	for _, c := range calls {
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the conversion webhook of %s: %w", p.res.GroupResource(), ctx.Err())
		}
		switch {
		case c.panicked != "":
			panic(c.panicked)
		case c.err != nil && !slices.ContainsFunc(c.objects, foreign):
			return nil, c.err
		case c.err != nil:
			failed = append(failed, slices.DeleteFunc(slices.Clone(c.objects), foreign)...)
		default:
			for i, o := range c.objects {
				made[o] = c.shown[i]
			}
		}
	}
	return failed, nil
}

// enter counts a reader that is about to wait; false if there are too many.
func (u *conversions) enter(stored *resource.Resource, limit int) bool {
	if limit == unlimited {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiters[stored] >= limit {
		return false
	}
	u.waiters[stored]++
	return true
}

// exit ends what enter began.
func (u *conversions) exit(stored *resource.Resource, limit int) {
	if limit == unlimited {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiters[stored]--; u.waiters[stored] == 0 {
		delete(u.waiters, stored)
	}
}

// join returns the calls that convert a batch: those that are under way, and a new
// one for what they leave out. The caller must leave them. alone leaves out calls
// under way that convert several objects. What a call has left that ended since the
// caller looked is added to made, so that no object is converted again for a reader that was slow.
func (u *conversions) join(ctx context.Context, p Encoder, made map[*watchcache.Object][]byte, batch []*watchcache.Object, alone bool) []*conversion {
	u.mu.Lock()
	defer u.mu.Unlock()
	var calls []*conversion
	var missing []*watchcache.Object
	for _, o := range batch {
		c := u.calls[p.conversionKey(o)]
		shown, ended := o.MadeForm(p.ids.shown, p.res.Generation)
		switch {
		case ended:
			made[o] = shown
		case c == nil || alone && len(c.objects) > 1:
			missing = append(missing, o)
		case !slices.Contains(calls, c):
			calls = append(calls, c)
			c.waiters++
		}
	}
	if len(missing) == 0 {
		return calls
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the waiters' own contexts end their waiting
	c := &conversion{encoder: p, objects: missing, cancel: cancel, waiters: 1, done: make(chan struct{})}
	for _, o := range missing {
		if key := p.conversionKey(o); u.calls[key] == nil {
			u.calls[key] = c
		}
	}
	go c.run(ctx)
	return append(calls, c)
}

// leave ends the waiting for calls. A call that nothing waits for is cancelled.
func (u *conversions) leave(calls []*conversion) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range calls {
		if c.waiters--; c.waiters == 0 {
			u.forget(c)
			c.cancel()
		}
	}
}

// finish publishes the results of a call.
func (u *conversions) finish(c *conversion) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget(c)
	close(c.done)
}

// forget lets no further reader join a call. The caller holds mu.
func (u *conversions) forget(c *conversion) {
	for _, o := range c.objects {
		if key := c.encoder.conversionKey(o); u.calls[key] == c {
			delete(u.calls, key)
		}
	}
}

func (p Encoder) conversionKey(o *watchcache.Object) conversionKey {
	return conversionKey{object: o, form: p.ids.shown, generation: p.res.Generation}
}

// run calls the webhook.
func (c *conversion) run(ctx context.Context) {
	defer underWay.finish(c)
	defer func() {
		if reason := recover(); reason != nil {
			c.panicked = fmt.Sprintf("%v\n%s", reason, debug.Stack())
		}
	}()
	c.shown, c.err = c.encoder.callWebhook(ctx, c.objects)
}

// callWebhook has the webhook convert objects, and caches the results with them.
func (p Encoder) callWebhook(ctx context.Context, objects []*watchcache.Object) ([][]byte, error) {
	stored := make([]resource.Object, len(objects))
	for i, o := range objects {
		obj, err := p.res.Storage.DecodeShown(o.JSON())
		if err != nil {
			return nil, err
		}
		stored[i] = obj
	}
	converted, err := p.res.FromStorageBatch(ctx, stored)
	if err != nil {
		return nil, err
	}
	shown := make([][]byte, len(objects))
	for i, o := range objects {
		shown[i], err = o.FormAt(p.ids.shown, p.res.Generation, func(o *watchcache.Object) ([]byte, error) {
			p.countEncode("json")
			return p.shownAs(o.JSON(), converted[i])
		})
		if err != nil {
			return nil, err
		}
	}
	return shown, nil
}
