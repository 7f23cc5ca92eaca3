package garbage

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/informer"
)

const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents

// runs has a collector collect, from when begin is called, until the test ends.
func runs(t *testing.T, a *api, test func(t *testing.T, c *Controller, begin func())) {
	collects(t, a, func(t *testing.T, ctx context.Context, c *Controller) {
		a.t, a.moved = t, make(chan struct{}) // of the bubble
		ctx, cancel := context.WithCancel(ctx)
		ended, begun := make(chan error, 1), false
		test(t, c, func() {
			begun = true
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
		})
		cancel()
		if begun {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// awaitsGone returns after what time of the bubble an owner is gone, or after an hour.
func (a *api) awaitsGone(owner string) time.Duration {
	for begun := time.Now(); ; time.Sleep(time.Second) { // of the bubble
		if there, _ := a.has("owners/" + owner); !there || time.Since(begun) > time.Hour {
			return time.Since(begun)
		}
	}
}

// TestOwnersDoNotGoBeforeTheirDependents: whatever keeps the collector from knowing what an owner has, the owner goes when all
// that it has is let go, or is deleted, and not before.
func TestOwnersDoNotGoBeforeTheirDependents(t *testing.T) {
	const things, gadgets, document = "things", "gadgets", "apis"
	for name, tt := range map[string]struct {
		before    func(a *api) // the collector begins
		after     func(a *api)
		dependent string
	}{
		"the collector was away, and a resource cannot be listed at first": {
			before: func(a *api) {
				a.create("things/one", "owner")
				a.mark("owner", orphan, 5*time.Minute)
				a.cut(things)
			},
			after: func(a *api) {
				time.Sleep(syncPatience + 10*time.Second)
				a.set(func() { a.refused[things] = false })
			},
		},
		"the server's clock is behind, and the watch was cut": {
			after: func(a *api) {
				a.set(func() { a.cut(things); a.create("things/one", "owner") })
				time.Sleep(3 * time.Second)
				a.set(func() { a.mark("owner", orphan, 5*time.Minute) })
				time.Sleep(20 * time.Second)
				a.set(func() { a.refused[things] = false })
			},
		},
		"the watch is cut that has held back a change for a minute": {
			after: func(a *api) {
				a.set(func() { a.hold(things); a.create("things/one", "owner"); a.mark("owner", orphan, 0) })
				time.Sleep(brokenPatience - time.Second)
				a.set(func() { a.cut(things) })
				time.Sleep(time.Minute)
				a.set(func() { a.refused[things] = false })
			},
		},
		"the watch holds back a change for ever": {
			after: func(a *api) {
				a.set(func() { a.hold(things); a.create("things/one", "owner"); a.mark("owner", orphan, 0) })
			},
		},
		"the watch holds back a change, and the server sends no bookmarks": {
			after: func(a *api) {
				a.set(func() {
					a.hold(things)
					a.silent[things] = true
					a.create("things/one", "owner")
					a.mark("owner", orphan, 0)
				})
			},
		},
		"a kind was defined, and the server cannot be asked what it serves": {
			after: func(a *api) {
				a.set(func() {
					a.refused[document] = true
					a.create("customresourcedefinitions/gadgets")
					a.served["gadgets.example.com/v1"] = []string{gadgets}
					a.create("gadgets/one", "owner")
					a.mark("owner", orphan, 0)
				})
				time.Sleep(2 * brokenPatience)
				a.set(func() { a.refused[document] = false })
			},
			dependent: "gadgets/one",
		},
		"a kind was defined, and is not known for a moment": {
			after: func(a *api) {
				a.set(func() {
					a.create("customresourcedefinitions/gadgets")
					a.create("gadgets/one", "owner")
					a.mark("owner", orphan, 0)
				})
				time.Sleep(settle / 2)
				a.set(func() { a.served["gadgets.example.com/v1"] = []string{gadgets} })
			},
			dependent: "gadgets/one",
		},
		"a dependent was adopted after the mark": {
			before: func(a *api) { a.create("things/one") },
			after: func(a *api) {
				a.set(func() {
					a.mark("owner", orphan, 0)
					a.hold(things)
					a.adopt("things/one", "owner")
				})
				time.Sleep(3 * time.Second)
				a.set(func() { delete(a.held, things) })
			},
		},
		"in the foreground, the collector was away, and a resource cannot be listed at first": {
			before: func(a *api) {
				a.create("things/one", "owner")
				a.mark("owner", foreground, 5*time.Minute)
				a.cut(things)
			},
			after: func(a *api) {
				time.Sleep(syncPatience + 10*time.Second)
				a.set(func() { a.refused[things] = false })
			},
			dependent: "none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI()
			runs(t, a, func(t *testing.T, _ *Controller, begin func()) {
				a.create("owners/owner")
				if tt.before != nil {
					tt.before(a)
				}
				begin()
				tt.after(a)
				if took := a.awaitsGone("owner"); took > 3*brokenPatience {
					t.Errorf("the owner is there after %v", took)
				}
				switch {
				case tt.dependent == "none":
					return
				case tt.dependent == "":
					tt.dependent = "things/one"
				}
				if there, owners := a.has(tt.dependent); !there || owners > 0 || len(a.deleted) > 0 {
					t.Errorf("the dependent is there: %v, with %d owners; deleted were %q", there, owners, a.deleted)
				}
			})
		})
	}
}

// mentions counts the lines that have a text.
type mentions struct {
	text string
	n    atomic.Int64
}

func (m *mentions) Write(line []byte) (int, error) {
	if strings.Contains(string(line), m.text) {
		m.n.Add(1)
	}
	return len(line), nil
}

// TestOwnersWaitForWhatCannotBeListed: an owner whose dependents are to stay waits as long as it takes, and the log says so.
func TestOwnersWaitForWhatCannotBeListed(t *testing.T) {
	a := newAPI()
	runs(t, a, func(t *testing.T, c *Controller, begin func()) {
		warnings := mentions{text: "waits until it is known"}
		c.log = slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
		a.create("owners/owner")
		a.create("owners/other")
		begin()
		a.set(func() { a.cut("things"); a.create("things/one", "owner") })
		time.Sleep(2 * brokenPatience) // of the bubble, as the others
		before := warnings.n.Load()
		a.set(func() { a.mark("owner", orphan, time.Hour); a.mark("other", foreground, time.Hour) })
		if took := a.awaitsGone("other"); took < brokenPatience || took > brokenPatience+4*graphTimeout {
			t.Errorf("the owner that goes before its dependents at worst has waited for %v", took)
		}
		time.Sleep(10 * brokenPatience)
		if there, _ := a.has("owners/owner"); !there {
			t.Error("the owner has gone, and nothing says what it has")
		}
		if n := warnings.n.Load() - before; n < 5 || n > 20 {
			t.Errorf("%d warnings in %v", n, 10*brokenPatience)
		}
		a.set(func() { a.refused["things"] = false })
		if took := a.awaitsGone("owner"); took > brokenPatience {
			t.Errorf("the owner is there after %v", took)
		}
		if there, owners := a.has("things/one"); !there || owners > 0 {
			t.Errorf("the dependent is there: %v, with %d owners", there, owners)
		}
		c.waits.mu.Lock()
		defer c.waits.mu.Unlock()
		if len(c.waits.owners) > 0 {
			t.Errorf("those still wait: %v", c.waits.owners)
		}
	})
}

// keepBusy has a thing change each second, until ctx ends, and the watch of things be late.
func (a *api) keepBusy(ctx context.Context, late time.Duration) {
	for ctx.Err() == nil {
		a.set(func() {
			a.note(apiwatch.Modified, "things/busy", a.objects["things/busy"])
			version := a.version
			time.AfterFunc(late, func() { a.set(func() { a.held["things"] = version }) })
		})
		time.Sleep(time.Second) // of the bubble
	}
}

// TestOwnersGoBesideAWatchThatIsAlwaysLate: for each owner the storage is asked once how far it is, and the watch comes to that.
func TestOwnersGoBesideAWatchThatIsAlwaysLate(t *testing.T) {
	const owners, late = 20, 2 * graphTimeout
	a := newAPI()
	runs(t, a, func(t *testing.T, _ *Controller, begin func()) {
		a.create("things/busy")
		for i := range owners {
			a.create(fmt.Sprintf("owners/%d", i))
			a.create(fmt.Sprintf("things/of-%d", i), fmt.Sprint(i))
		}
		begin()
		time.Sleep(2 * rediscover) // of the bubble, as the others
		a.set(func() { a.hold("things") })
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() { a.keepBusy(ctx, late) })
		time.Sleep(2 * late)
		before := a.listed("owners?limit=1", "things")
		a.set(func() {
			for i := range owners {
				a.mark(fmt.Sprint(i), orphan, 0)
			}
		})
		time.Sleep(10 * brokenPatience)
		for i := range owners {
			there, _ := a.has(fmt.Sprintf("owners/%d", i))
			if kept, n := a.has(fmt.Sprintf("things/of-%d", i)); there || !kept || n > 0 {
				t.Errorf("owner %d is there: %v; its dependent: %v, with %d owners", i, there, kept, n)
			}
		}
		after := a.listed("owners?limit=1", "things")
		if got := after[0] - before[0]; got > 2*owners { // informers ask, too
			t.Errorf("the storage was asked %d times how far it is, for %d owners", got, owners)
		}
		if got := after[1] - before[1]; got > 0 {
			t.Errorf("what may depend on them was listed %d times", got)
		}
	})
}

// TestOwnersGoBesideAGroupThatCannotBeAsked: one that is away for good must not keep owners for ever. The log says what that may
// mean.
func TestOwnersGoBesideAGroupThatCannotBeAsked(t *testing.T) {
	for _, finalizer := range []string{orphan, foreground} {
		t.Run(finalizer, func(t *testing.T) {
			a := newAPI()
			runs(t, a, func(t *testing.T, c *Controller, begin func()) {
				a.served["gone.example.com/v1"] = []string{"gone"}
				a.refused["apis/gone.example.com/v1"] = true
				warnings := mentions{text: "kinds that are not known does not stay"}
				c.log = slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
				for _, owner := range []string{"first", "second", "third", "fourth"} {
					a.create("owners/" + owner)
				}
				a.create("things/one", "first")
				begin()
				a.set(func() { a.mark("first", finalizer, 0) })
				if took := a.awaitsGone("first"); took < brokenPatience-10*time.Second || took > brokenPatience+2*graphTimeout {
					t.Errorf("at first an owner has waited for %v", took)
				}
				a.set(func() { a.mark("second", finalizer, 0) })
				if took := a.awaitsGone("second"); took > 2*graphTimeout {
					t.Errorf("the next has waited for %v, although the group has been away for long", took)
				}
				a.set(func() { a.create("customresourcedefinitions/gadgets.example.com"); a.mark("third", finalizer, 0) })
				if took := a.awaitsGone("third"); took > 2*graphTimeout {
					t.Errorf("after a definition of another group an owner has waited for %v", took)
				}
				a.set(func() { a.create("customresourcedefinitions/gadgets.gone.example.com"); a.mark("fourth", finalizer, 0) })
				if took := a.awaitsGone("fourth"); took < brokenPatience-10*time.Second || took > brokenPatience+2*graphTimeout {
					t.Errorf("after a definition of the group an owner has waited for %v", took)
				}
				if said := warnings.n.Load() > 0; said != (finalizer == orphan) {
					t.Errorf("the log says that something may not stay: %v", said)
				}
			})
		})
	}
}

// TestOwnersGoWhileDefinitionsChangeAllTheTime: a discovery takes longer than it is between two changes.
func TestOwnersGoWhileDefinitionsChangeAllTheTime(t *testing.T) {
	a := newAPI()
	a.slow = 3 * settle
	runs(t, a, func(t *testing.T, _ *Controller, begin func()) {
		const definition = "customresourcedefinitions/gadgets.example.com"
		a.create(definition)
		a.create("owners/owner")
		a.create("things/one", "owner")
		begin()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() {
			for ctx.Err() == nil {
				a.set(func() { a.note(apiwatch.Modified, definition, a.objects[definition]) })
				time.Sleep(settle) // of the bubble
			}
		})
		time.Sleep(2 * rediscover)
		a.set(func() { a.mark("owner", orphan, 0) })
		if took := a.awaitsGone("owner"); took > 10*a.slow {
			t.Errorf("the owner is there after %v", took)
		}
		if there, owners := a.has("things/one"); !there || owners > 0 {
			t.Errorf("the dependent is there: %v, with %d owners", there, owners)
		}
	})
}

// TestOwnersWaitWhileAResourceChangesItsVersion: the resource is watched in no version for a moment, and is not to be left out.
func TestOwnersWaitWhileAResourceChangesItsVersion(t *testing.T) {
	a := newAPI()
	runs(t, a, func(t *testing.T, c *Controller, begin func()) {
		a.create("owners/owner")
		begin()
		time.Sleep(2 * rediscover) // of the bubble
		c.mu.Lock()
		old := c.watching[schema.GroupVersionResource{Group: "things.example.com", Version: "v1", Resource: "things"}]
		c.mu.Unlock()
		busy := make(chan struct{}) // until then the informer of the old version does not end
		other := informer.Metadata(old.factory, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "owners"}, informer.ListOptions{})
		if _, err := other.AddHandler(informer.HandlerFuncs[*metadata]{Add: func(*metadata, bool) { <-busy }}, informer.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		old.factory.Start(t.Context())
		synctest.Wait()
		a.set(func() {
			delete(a.served, "things.example.com/v1")
			a.served["things.example.com/v2"] = []string{"things"}
		})
		c.served <- struct{}{}
		synctest.Wait()
		a.set(func() { a.create("things/one", "owner"); a.mark("owner", orphan, 0) })
		time.Sleep(10 * time.Second)
		close(busy)
		if took := a.awaitsGone("owner"); took > brokenPatience {
			t.Errorf("the owner is there after %v", took)
		}
		if there, owners := a.has("things/one"); !there || owners > 0 {
			t.Errorf("the dependent is there: %v, with %d owners", there, owners)
		}
	})
}

// TestOwnersWaitForAResourceThatIsGivenUp while the collector looks what they have: the graph forgets its objects then. The
// resources are looked at in any order, so there are many runs.
func TestOwnersWaitForAResourceThatIsGivenUp(t *testing.T) {
	for range 12 {
		a := newAPI()
		runs(t, a, func(t *testing.T, c *Controller, begin func()) {
			a.create("owners/owner")
			a.create("things/one", "owner")
			a.served["others.example.com/v1"] = []string{"others"}
			begin()
			time.Sleep(2 * rediscover) // of the bubble
			busy := make(chan struct{})
			c.holdFlush(t, schema.GroupVersionResource{Group: "others.example.com", Version: "v1", Resource: "others"}, busy)
			a.set(func() { a.create("others/one") })
			synctest.Wait()
			a.set(func() { a.mark("owner", orphan, 0) })
			time.Sleep(graphRetry)
			a.set(func() {
				a.cut("things")
				delete(a.served, "things.example.com/v1")
				a.served["things.example.com/v2"] = []string{"things"}
			})
			c.served <- struct{}{}
			time.Sleep(graphRetry)
			close(busy)
			time.Sleep(10 * time.Second)
			a.set(func() { a.refused["things"] = false })
			if took := a.awaitsGone("owner"); took > brokenPatience {
				t.Errorf("the owner is there after %v", took)
			}
			if there, owners := a.has("things/one"); !there || owners > 0 {
				t.Errorf("the dependent is there: %v, with %d owners", there, owners)
			}
		})
	}
}

// holdFlush has the wait for the graph of a resource last until a channel is closed, once an object of it has come.
func (c *Controller) holdFlush(t *testing.T, resource schema.GroupVersionResource, until <-chan struct{}) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watching[resource]
	handler, err := w.informer.(*informer.SharedInformer[*metadata]).AddHandler(
		informer.HandlerFuncs[*metadata]{Add: func(*metadata, bool) { <-until }}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.handler = handler
	c.watching[resource] = w
}
