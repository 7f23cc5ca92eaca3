package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/informer"
)

// heldBack is an informer that shows what a test lets it.
type heldBack struct {
	name   string
	newest int // the most recent version of its server; 0: there is always a newer one

	mu      sync.Mutex
	shown   int
	ahead   int // the newest change that it shows; 0: that of shown
	changed chan struct{}
	asked   []string
}

// NewestResourceVersion is what SharedInformers have.
func (h *heldBack) NewestResourceVersion() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strconv.Itoa(h.ahead)
}

// showAhead has it show a change before its version says so.
func (h *heldBack) showAhead(version int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead = version
}

func hold(name string, shown int) *heldBack {
	return &heldBack{name: name, shown: shown, changed: make(chan struct{})}
}

func (h *heldBack) Name() string { return h.name }

func (h *heldBack) Synced() <-chan struct{} {
	synced := make(chan struct{})
	close(synced)
	return synced
}

func (h *heldBack) LastSyncResourceVersion() string { return strconv.Itoa(h.version()) }

func (h *heldBack) version() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

func (h *heldBack) show(version int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = version
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *heldBack) CatchUp(ctx context.Context, version string) error {
	h.mu.Lock()
	h.asked = append(h.asked, version)
	h.mu.Unlock()
	for {
		h.mu.Lock()
		shown, changed := h.shown, h.changed
		h.mu.Unlock()
		switch {
		case reaches(strconv.Itoa(shown), version):
			return nil
		case h.newest > 0 && reaches(version, strconv.Itoa(h.newest)):
			return fmt.Errorf("%s: %w", h.name, informer.ErrOtherVersions)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// consistentRun runs a controller that reads held informers. What it reads after Consistent is
// sent to views.
type consistentRun struct {
	*Controller
	informers []*heldBack
	views     chan map[string]int
	before    func(context.Context) // called before Consistent
	after     func()                // called after it
	busy      chan chan struct{}    // what a key called busy waits for
	objs      []metav1.Object
	logger    *slog.Logger
}

func (r *consistentRun) reconcile(ctx context.Context, key Key) (Result, error) {
	if key.Name == "busy" {
		<-<-r.busy
		return Result{}, nil
	}
	if r.before != nil {
		r.before(ctx)
	}
	err := Consistent(ctx, r.objs...)
	r.after()
	if err != nil {
		return Result{}, fmt.Errorf("not yet: %w", err)
	}
	view := map[string]int{}
	for _, h := range r.informers {
		view[h.name] = h.version()
	}
	r.views <- view
	return Result{}, nil
}

func runConsistent(t *testing.T, informers []*heldBack, set ...func(*consistentRun)) *consistentRun {
	t.Helper()
	r := &consistentRun{informers: informers, views: make(chan map[string]int, 100), after: func() {}, busy: make(chan chan struct{}, 1)}
	for _, change := range set {
		change(r)
	}
	r.Controller = made(t, r.reconcile, Options{Logger: r.logger})
	for _, h := range informers {
		r.RequireSync(h.name, h)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// wantViews compares what was read by now.
func (r *consistentRun) wantViews(t *testing.T, want ...map[string]int) {
	t.Helper()
	time.Sleep(time.Second) // of the bubble
	synctest.Wait()
	var got []map[string]int
	for len(r.views) > 0 {
		got = append(got, <-r.views)
	}
	if !slices.EqualFunc(got, want, maps.Equal[map[string]int]) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// orders returns every order of some names.
func orders(names []string) (all [][]string) {
	if len(names) == 0 {
		return [][]string{nil}
	}
	for i, name := range names {
		rest := slices.Concat(names[:i], names[i+1:])
		for _, order := range orders(rest) {
			all = append(all, append([]string{name}, order...))
		}
	}
	return all
}

// TestConsistentInEveryOrder: whichever watch is behind the others, and in whichever order they
// come to a version, a call reads nothing older than the newest that any informer shows.
func TestConsistentInEveryOrder(t *testing.T) {
	for _, order := range orders([]string{"owners", "dependents", "nodes"}) {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := map[string]*heldBack{}
				var informers []*heldBack
				for _, name := range order {
					held[name] = hold(name, 1)
					informers = append(informers, held[name])
				}
				r := runConsistent(t, informers)
				r.Add(key)
				r.wantViews(t, map[string]int{"owners": 1, "dependents": 1, "nodes": 1})
				for i, name := range order {
					held[name].show(10)
					if i < len(order)-1 {
						r.Add(key) // as its handler does
						r.wantViews(t)
					}
				}
				r.wantViews(t, map[string]int{"owners": 10, "dependents": 10, "nodes": 10})
				if stats := r.Stats(); stats.Failures != 0 || stats.PutOffs == 0 || stats.Waited == 0 {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

// TestConsistentWithWhatComesDuringTheCall: a call may read what an informer has come to since it began.
func TestConsistentWithWhatComesDuringTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold("a", 10), hold("b", 10)
		var once sync.Once
		r := runConsistent(t, []*heldBack{a, b}, func(r *consistentRun) {
			r.before = func(context.Context) { once.Do(func() { a.show(20) }) }
		})
		r.Add(key)
		r.wantViews(t)
		b.show(20)
		r.wantViews(t, map[string]int{"a": 20, "b": 20})
	})
}

// TestConsistentWithOneThatMovesOn: a call may have read a part of an informer before a change, and a part after it.
func TestConsistentWithOneThatMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, calls := hold("a", 10), 0
		r := runConsistent(t, []*heldBack{a}, func(r *consistentRun) {
			r.before = func(context.Context) {
				if calls++; calls == 1 {
					a.show(20)
				}
			}
		})
		r.Add(key)
		r.wantViews(t, map[string]int{"a": 20})
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestConsistentWithAChangeThatIsShownEarly: an informer shows a change, and its handler is called, before its version is
// that of the change. What has caused the call counts all the same, also once the version has come.
func TestConsistentWithAChangeThatIsShownEarly(t *testing.T) {
	for name, versions := range map[string]struct{ dependents, owners int }{
		"the others are older": {10, 10},
		"the others are newer": {10, 15}, // an own write, say
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dependents, owners := hold("dependents", versions.dependents), hold("owners", versions.owners)
				r := runConsistent(t, []*heldBack{dependents, owners})
				dependents.showAhead(20)
				r.Add(key) // by the handler
				r.wantViews(t)
				dependents.show(20)
				r.wantViews(t) // the owner may want fewer by now
				owners.show(20)
				r.wantViews(t, map[string]int{"dependents": 20, "owners": 20})
			})
		})
	}
}

// TestConsistentIncludes: own writes, and the versions of the objects that a decision is about.
func TestConsistentIncludes(t *testing.T) {
	object := func(version string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: types.UID(version), ResourceVersion: version}
	}
	for name, set := range map[string]func(*consistentRun){
		"an own write": func(r *consistentRun) { r.before = func(ctx context.Context) { Wrote(ctx, object("20")) } },
		"an older write": func(r *consistentRun) {
			r.before = func(ctx context.Context) { Wrote(ctx, object("20")); Wrote(ctx, object("3")) }
		},
		"an object":        func(r *consistentRun) { r.objs = []metav1.Object{object("20")} },
		"the newest of":    func(r *consistentRun) { r.objs = []metav1.Object{object("9"), object("20"), object("")} },
		"what is a number": func(r *consistentRun) { r.objs = []metav1.Object{object("x"), object("20"), object("y")} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := hold("a", 10), hold("b", 10)
				r := runConsistent(t, []*heldBack{a, b}, set)
				r.Add(key)
				r.wantViews(t)
				a.show(20)
				r.wantViews(t)
				b.show(25)
				r.wantViews(t, map[string]int{"a": 20, "b": 25})
			})
		})
	}
}

// TestConsistentKeepsNobodyWaiting: a key that waits for an informer leaves its worker to others,
// is in no back-off, and is reconciled once when the informer is there, however often it was
// added.
func TestConsistentKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold("a", 10), hold("b", 5)
		var mu sync.Mutex
		calls := map[Key]int{}
		read := map[Key]int{}
		c := made(t, func(ctx context.Context, k Key) (Result, error) {
			mu.Lock()
			calls[k]++
			mu.Unlock()
			if k.Name == "independent" {
				return Result{}, nil
			}
			if err := Consistent(ctx); err != nil {
				return Result{}, err
			}
			mu.Lock()
			defer mu.Unlock()
			read[k] = b.version()
			return Result{}, nil
		}, Options{})
		c.RequireSync("a", a)
		c.RequireSync("b", b)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		const keys = 100
		for range 3 {
			for i := range keys {
				c.Add(Key{Name: fmt.Sprint(i)})
			}
			synctest.Wait()
		}
		begun := time.Now()
		c.Add(Key{Name: "independent"})
		synctest.Wait()
		mu.Lock()
		if calls[Key{Name: "independent"}] != 1 || time.Since(begun) != 0 || len(read) != 0 {
			t.Errorf("others waited for %v, %d were read", time.Since(begun), len(read))
		}
		clear(calls)
		mu.Unlock()
		b.show(12)
		synctest.Wait()
		time.Sleep(time.Minute)
		a.show(12)
		time.Sleep(time.Minute)
		mu.Lock()
		if len(read) != keys {
			t.Errorf("%d of %d were reconciled", len(read), keys)
		}
		for k, n := range calls {
			if n > 2 { // at 12 of b, and at 12 of both
				t.Errorf("%v was reconciled %d times", k, n)
			}
		}
		mu.Unlock()
		if stats := c.Stats(); stats.Failures != 0 || stats.Queue.Delayed != 0 {
			t.Errorf("%+v", stats)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestConsistentWithWhatWakesAKeyThatWaits: a key that waits for an informer to come to 10 is woken by a change at 20, and the
// informer comes to 12: it may lack what has led to that change. It does not matter whether the key is called meanwhile, is
// still in its call, or in the queue when the informer has come to 10.
func TestConsistentWithWhatWakesAKeyThatWaits(t *testing.T) {
	for name, wake := range map[string]func(r *consistentRun, change func()){
		"and is called": func(r *consistentRun, change func()) {
			r.Add(key)
			synctest.Wait()
			change()
			r.Add(key)
			synctest.Wait()
		},
		"in its call": func(r *consistentRun, change func()) {
			asked, wakes := r.after, sync.Once{}
			r.after = func() {
				asked()
				wakes.Do(func() { change(); r.Add(key) })
			}
			r.Add(key)
			synctest.Wait()
		},
		"in the queue": func(r *consistentRun, change func()) {
			r.Add(key)
			synctest.Wait()
			busy := make(chan struct{})
			r.busy <- busy
			r.Add(Key{Name: "busy"})
			synctest.Wait()
			change()
			r.Add(key)
			r.informers[1].show(12)
			synctest.Wait()
			close(busy)
		},
		"to be called soon": func(r *consistentRun, change func()) {
			r.Add(key)
			synctest.Wait()
			busy := make(chan struct{})
			r.busy <- busy
			r.Add(Key{Name: "busy"})
			synctest.Wait()
			r.informers[1].show(12)
			synctest.Wait()
			change()
			r.AddPriority(key, 1)
			close(busy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := hold("a", 10), hold("b", 5)
				r := runConsistent(t, []*heldBack{a, b})
				wake(r, func() { a.show(20) })
				b.show(12)
				r.wantViews(t)
				b.show(20)
				r.wantViews(t, map[string]int{"a": 20, "b": 20})
			})
		})
	}
}

// TestConsistentOfAKeyThatHasNothingToDo: a key that waits, and is woken, and then finds nothing to do, does not come back.
func TestConsistentOfAKeyThatHasNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, calls := hold("a", 10), hold("b", 5), 0
		c := made(t, func(ctx context.Context, _ Key) (Result, error) {
			if calls++; calls > 1 {
				return Result{}, nil
			}
			return Result{}, Consistent(ctx)
		}, Options{})
		c.RequireSync("a", a)
		c.RequireSync("b", b)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for range 2 {
			c.Add(key)
			synctest.Wait()
		}
		if put := c.Stats().KeysPutOff; put != 0 {
			t.Errorf("%d keys wait", put)
		}
		b.show(10)
		synctest.Wait()
		if calls != 2 || len(c.putOff)+len(c.wakes.woken) != 0 {
			t.Errorf("%d calls; left are %v, %v", calls, c.putOff, c.wakes.woken)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestConsistentOfAKeyThatIsWokenAllTheTime: it waits until informers have caught up with what woke it, but not for ever.
func TestConsistentOfAKeyThatIsWokenAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold("a", 10), hold("b", 5)
		r := runConsistent(t, []*heldBack{a, b})
		r.Add(key)
		synctest.Wait()
		versions := 0
		for ; len(r.views) == 0 && versions < 1000; versions++ {
			a.show(11 + versions)
			r.Add(key)
			synctest.Wait()
			b.show(6 + versions)
			synctest.Wait()
		}
		// Informers come to the version of a change with the fifth after it.
		if bound := (catchUpsMost + 2) * 5; versions < catchUpsMost*5 || versions > bound {
			t.Errorf("the key was reconciled after %d changes, want %d to %d", versions, catchUpsMost*5, bound)
		}
	})
}

// TestConsistentWithRequireResourceVersion: what other processes wrote before this one was elected counts for every call, and a
// Lease that is in another storage holds up none, nor turns off what else is compared.
func TestConsistentWithRequireResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, other := hold("a", 10), hold("b", 10), hold("another storage's", 3)
		other.newest = 15
		r := runConsistent(t, []*heldBack{a, b}, func(r *consistentRun) { r.objs = []metav1.Object{&metav1.ObjectMeta{ResourceVersion: "10"}} })
		for _, version := range []string{"x", "20", "", "12"} {
			r.RequireResourceVersion(version)
		}
		r.Add(key)
		r.wantViews(t)
		b.show(20)
		r.wantViews(t)
		a.show(20)
		r.wantViews(t, map[string]int{"a": 20, "b": 20})
		r.RequireSync(other.name, other)
		r.Add(key)
		r.wantViews(t) // the other one lacks the object, which is compared still
		other.show(10)
		r.wantViews(t, map[string]int{"a": 20, "b": 20})
	})
}

// TestConsistentWithOtherVersions: an informer of a server that counts otherwise holds up nobody,
// and what can be compared is.
func TestConsistentWithOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, other := hold("a", 10), hold("b", 5), hold("aggregated", 1_000_000)
		a.newest, b.newest = 1000, 1000
		var log bytes.Buffer // written under the handler's lock, and read once nothing runs
		r := runConsistent(t, []*heldBack{a, b, other}, func(r *consistentRun) { r.logger = slog.New(slog.NewTextHandler(&log, nil)) })
		r.Add(key)
		r.wantViews(t)
		b.show(10)
		r.wantViews(t, map[string]int{"a": 10, "b": 10, "aggregated": 1_000_000})
		b.show(20)
		r.Add(key)
		r.wantViews(t)
		a.show(20)
		r.wantViews(t, map[string]int{"a": 20, "b": 20, "aggregated": 1_000_000})
		if want := []string{"1000000", "20"}; !slices.Equal(a.asked, want) { // it is remembered
			t.Errorf("a was asked for %q, want %q", a.asked, want)
		}
		time.Sleep(foreignFor) // of the bubble
		r.Add(key)
		r.wantViews(t, map[string]int{"a": 20, "b": 20, "aggregated": 1_000_000})
		if n := strings.Count(log.String(), "level=WARN"); n != 2 || !strings.Contains(log.String(), "from=aggregated") { // a, and b
			t.Errorf("%d warnings: %s", n, log.String())
		}
	})
}

// TestConsistentWhileEverythingChanges: a key waits for what was shown when it asked first, or it
// would never be reconciled while one informer goes on and the other is always a little behind.
func TestConsistentWhileEverythingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold("a", 10), hold("b", 5)
		r := runConsistent(t, []*heldBack{a, b})
		r.Add(key)
		for version := 11; version < 100; version++ {
			time.Sleep(50 * time.Millisecond)
			a.show(version)
			b.show(version - 5)
		}
		time.Sleep(50 * time.Millisecond)
		if len(r.views) != 1 {
			t.Errorf("the key was reconciled %d times", len(r.views))
		} else if view := <-r.views; view["b"] < 10 {
			t.Errorf("read %v", view)
		}
	})
}

// catchingUp is an informer that takes a time to come to what is newest by then.
type catchingUp struct {
	*heldBack
	newest func() int
	takes  time.Duration
}

func (u *catchingUp) CatchUp(ctx context.Context, version string) error {
	for !reaches(u.LastSyncResourceVersion(), version) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(u.takes):
		}
		u.show(u.newest())
	}
	return nil
}

// TestConsistentOfABusyOwner: neither an owner whose status changes all the time nor writes for
// other keys make a key wait for longer than informers take once.
func TestConsistentOfABusyOwner(t *testing.T) {
	writer := Key{Name: "writer"}
	for name, set := range map[string]struct{ owned, writes bool }{"an owner": {owned: true}, "writes": {writes: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				owner := hold("owner", 10)
				b := &catchingUp{hold("b", 5), owner.version, time.Second}
				d := &catchingUp{hold("d", 5), owner.version, 1350 * time.Millisecond}
				passed := make(chan struct{}, 1000)
				c := made(t, func(ctx context.Context, k Key) (Result, error) {
					now := &metav1.ObjectMeta{UID: "owner", Generation: 1, ResourceVersion: owner.LastSyncResourceVersion()}
					if k == writer {
						Wrote(ctx, now)
						return Result{}, nil
					}
					var objs []metav1.Object
					if set.owned {
						objs = append(objs, now)
					}
					if err := Consistent(ctx, objs...); err != nil {
						return Result{}, err
					}
					passed <- struct{}{}
					return Result{}, nil
				}, Options{})
				for _, s := range []Source{owner, b, d} {
					c.RequireSync("informer", s)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- c.Run(ctx) }()
				c.Add(key)
				for version := 11; version < 41; version++ {
					time.Sleep(300 * time.Millisecond)
					owner.show(version)
					if set.writes {
						c.Add(writer)
					}
				}
				if len(passed) != 1 {
					t.Errorf("passed %d times in nine seconds", len(passed))
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestConsistentAsksForMarks: that an owner has been marked for deletion, or is wanted otherwise,
// counts although the key was put off before.
func TestConsistentAsksForMarks(t *testing.T) {
	for name, changed := range map[string]func(*metav1.ObjectMeta){
		"deleted":    func(o *metav1.ObjectMeta) { o.DeletionTimestamp = &metav1.Time{} },
		"generation": func(o *metav1.ObjectMeta) { o.Generation = 2 },
		"replaced":   func(o *metav1.ObjectMeta) { o.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				owner := &metav1.ObjectMeta{UID: "owner", Generation: 1, ResourceVersion: "10"}
				a, b := hold("a", 10), hold("b", 5)
				r := runConsistent(t, []*heldBack{a, b}, func(r *consistentRun) { r.objs = []metav1.Object{owner} })
				r.Add(key)
				r.wantViews(t)
				changed(owner)
				owner.ResourceVersion = "20"
				a.show(20)
				b.show(12)
				r.wantViews(t)
				b.show(21)
				r.wantViews(t, map[string]int{"a": 20, "b": 21})
			})
		})
	}
}

// TestConsistentWithoutVersions: an informer of which nothing can be said holds up nobody.
// TestConsistentBesideAnError: what else went wrong is counted, and the key comes back as soon as informers have caught up.
func TestConsistentBesideAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold("a", 1), hold("b", 2)
		other, calls := errors.New("the status was not written"), 0
		c := made(t, func(ctx context.Context, _ Key) (Result, error) {
			if calls++; calls > 1 {
				return Result{}, Consistent(ctx)
			}
			return Result{}, fmt.Errorf("not yet: %w", errors.Join(errors.Join(Consistent(ctx), other), nil))
		}, Options{})
		c.RequireSync("a", a)
		c.RequireSync("b", b)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		c.Add(key)
		synctest.Wait()
		if stats := c.Stats(); stats.Failures != 1 || stats.PutOffs != 1 {
			t.Errorf("%+v", stats)
		}
		a.show(2)
		synctest.Wait()
		if stats := c.Stats(); calls != 2 || stats.Failures != 1 {
			t.Errorf("%d calls, %+v", calls, stats)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestConsistentWithoutVersions(t *testing.T) {
	for _, version := range []string{"", "0", "x", "007"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := hold("a", 10), hold("b", 10)
				r := runConsistent(t, []*heldBack{a, b})
				r.RequireSync("without", unversioned{hold("without", 0), version})
				r.Add(key)
				r.wantViews(t, map[string]int{"a": 10, "b": 10})
			})
		})
	}
}

type unversioned struct {
	*heldBack
	version string
}

func (u unversioned) LastSyncResourceVersion() string { return u.version }

// TestConsistentWithAStoppedInformer ends Run: nobody knows any more what is not there.
func TestConsistentWithAStoppedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := made(t, func(ctx context.Context, _ Key) (Result, error) { return Result{}, Consistent(ctx) }, Options{})
		c.RequireSync("a", hold("a", 10))
		c.RequireSync("b", stoppedInformer{hold("b", 5)})
		c.Add(key)
		if err := c.Run(t.Context()); !errors.Is(err, errSourceEnded) {
			t.Error(err)
		}
		if calls := c.Stats().Calls; calls > 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

type stoppedInformer struct{ *heldBack }

func (stoppedInformer) CatchUp(context.Context, string) error { return informer.ErrStopped }

// TestConsistentEndsWithRun: a key whose informer never comes ends with the controller.
func TestConsistentEndsWithRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runConsistent(t, []*heldBack{hold("a", 10), hold("b", 5)})
		r.Add(key)
		r.wantViews(t)
	})
}

// TestConsistentElsewhere: a ReconcileFunc that a test calls by itself is not held up.
func TestConsistentElsewhere(t *testing.T) {
	if err := Consistent(t.Context(), &metav1.ObjectMeta{ResourceVersion: "5"}); err != nil {
		t.Error(err)
	}
	Wrote(t.Context(), &metav1.ObjectMeta{ResourceVersion: "5"})
	if err := errors.New(behindError{}.Error()); err.Error() == "" {
		t.Error("the error says nothing")
	}
}
