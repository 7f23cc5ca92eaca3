package reauthorization

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/testseed"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// policy is an Authorizer by a user's name.
type policy struct {
	changes auth.Changes
	asked   atomic.Int64

	mu          sync.Mutex
	allowed     map[string]bool
	withdrawals map[string]int
	undecided   bool
	wait        func() // during a decision, after it was made; nil: nothing
}

func newPolicy(users ...string) *policy {
	p := &policy{allowed: map[string]bool{}, withdrawals: map[string]int{}}
	for _, user := range users {
		p.allowed[user] = true
	}
	return p
}

func (p *policy) set(user string, allowed bool) {
	p.mu.Lock()
	if p.allowed[user] && !allowed {
		p.withdrawals[user]++
	}
	p.allowed[user] = allowed
	p.mu.Unlock()
	p.changes.Notify()
}

func (p *policy) state(user string) (allowed bool, withdrawals int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed[user], p.withdrawals[user]
}

var errForbidden = errors.New("forbidden")

func (p *policy) Reauthorize(_ context.Context, a auth.Attributes) (withdrawn, err error) {
	p.asked.Add(1)
	p.mu.Lock()
	undecided, allowed, wait := p.undecided, p.allowed[a.User.Name], p.wait
	p.mu.Unlock()
	if wait != nil {
		wait()
	}
	switch {
	case undecided:
		return nil, errors.New("not known")
	case allowed:
		return nil, nil
	}
	return errForbidden, nil
}

func (p *policy) OnChange(changed func(user string)) (stop func()) {
	return p.changes.OnChange(changed)
}

// openWatch counts its ends.
type openWatch struct {
	member Member
	user   string
	ends   atomic.Int64
	onEnd  func()
}

func (o *openWatch) Withdrawn() {
	o.ends.Add(1)
	if o.onEnd != nil {
		o.onEnd()
	}
}

func rightsOf(user string) Rights {
	return Rights{Watch: &auth.Attributes{User: auth.User{Name: user}, Verb: "watch", Resource: "pods"}}
}

func (o *openWatch) register(w *Watches) {
	w.Register(context.Background(), &o.member, o, rightsOf(o.user))
}

// run runs Watches of a policy until the test, in a bubble of fake time, ends.
func run(t *testing.T, p *policy) *Watches {
	t.Helper()
	w := New(Config{Authorizer: p, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range 2 { // one of them does the work
		running.Go(func() { w.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	time.Sleep(time.Second) // after the first pass
	return w
}

// TestGroups: one decision for equal rights, and a withdrawn right ends all watches that
// need it and no other.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane", "joe")
		w := run(t, p)
		var watches []*openWatch
		for i := range 1000 {
			o := &openWatch{user: []string{"jane", "joe"}[i%2]}
			o.register(w)
			watches = append(watches, o)
		}
		if asked := p.asked.Load(); asked != 2 || w.Groups() != 2 {
			t.Errorf("%d decisions, %d groups of two users", asked, w.Groups())
		}
		time.Sleep(time.Second)
		p.asked.Store(0)
		for range 100 {
			p.changes.Notify()
		}
		time.Sleep(time.Second)
		if asked := p.asked.Load(); asked > 4 {
			t.Errorf("%d decisions after changes in quick succession", asked)
		}
		w.Unregister(&watches[998].member)
		p.set("jane", false)
		time.Sleep(time.Second)
		for i, o := range watches {
			want := map[bool]int64{true: 1}[o.user == "jane" && i != 998]
			if o.ends.Load() != want {
				t.Fatalf("watch %d of %s was ended %d times, want %d", i, o.user, o.ends.Load(), want)
			}
			w.Unregister(&o.member)
		}
		if len(w.byHash) != 0 {
			t.Errorf("%d groups are left", len(w.byHash))
		}
	})
}

// TestRandomWithdrawals: whenever rights are withdrawn, granted, and needed by new
// watches, no watch stays open for a second without its right, and none is ended whose
// right held from its authorization on.
func TestRandomWithdrawals(t *testing.T) {
	seed := testseed.New(t)
	synctest.Test(t, func(t *testing.T) {
		users := make([]string, 5)
		for i := range users {
			users[i] = fmt.Sprint("user", i)
		}
		p := newPolicy(users...)
		p.wait = runtime.Gosched
		w := run(t, p)
		stop := make(chan struct{})
		var clients, changes sync.WaitGroup
		for i := range 8 {
			random := seed.Rand(i)
			clients.Go(func() {
				for range 400 {
					o := &openWatch{user: users[random.IntN(len(users))]}
					allowed, before := p.state(o.user)
					if !allowed {
						runtime.Gosched()
						continue
					}
					o.onEnd = func() {
						if _, now := p.state(o.user); now == before {
							t.Errorf("a watch of %s was ended whose right held", o.user)
						}
					}
					if random.IntN(2) == 0 {
						time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
					}
					o.register(w)
					if random.IntN(2) == 0 {
						time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
					}
					if _, now := p.state(o.user); now != before { // it must end
						time.Sleep(time.Second)
						if o.ends.Load() == 0 {
							// Unless the right was granted again before a decision.
							if allowed, again := p.state(o.user); !allowed && again == now {
								t.Errorf("a watch of %s is open for a second without its right", o.user)
							}
						}
					}
					w.Unregister(&o.member)
				}
			})
		}
		for i, user := range users {
			random := seed.Rand(100 + i)
			changes.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					p.set(user, random.IntN(3) > 0)
					if random.IntN(2) == 0 {
						time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
					} else if random.IntN(20) == 0 {
						p.set(user, false)
						time.Sleep(2 * time.Second)
					}
				}
			})
		}
		clients.Wait()
		close(stop)
		changes.Wait()
		if n := w.Groups(); n != 0 {
			t.Errorf("%d groups are left", n)
		}
	})
}

// TestWithdrawnBeforeRegistration: the pass after the change came too early to find the
// watch, which was authorized before the change.
func TestWithdrawnBeforeRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane")
		w := run(t, p)
		for range 2 {
			p.set("jane", true)
			earlier := &openWatch{user: "jane"}
			earlier.register(w)
			p.set("jane", false)
			time.Sleep(time.Second)
			late := &openWatch{user: "jane"}
			late.register(w)
			if earlier.ends.Load() != 1 || late.ends.Load() != 1 {
				t.Fatalf("the earlier watch was ended %d times, the late one %d", earlier.ends.Load(), late.ends.Load())
			}
			w.Unregister(&earlier.member)
			w.Unregister(&late.member)
		}
	})
}

// TestGrantDuringDecision: a decision from before a grant does not end a watch that the
// grant allowed.
func TestGrantDuringDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane")
		w := run(t, p)
		old, granted := &openWatch{user: "jane"}, &openWatch{user: "jane"}
		old.register(w)
		time.Sleep(time.Second)
		var asked atomic.Bool
		p.mu.Lock()
		p.wait = func() {
			if asked.CompareAndSwap(false, true) {
				p.set("jane", true)
				granted.register(w)
			}
		}
		p.mu.Unlock()
		p.set("jane", false)
		time.Sleep(time.Second)
		if !asked.Load() || granted.ends.Load() != 0 || old.ends.Load() != 0 {
			t.Errorf("asked: %v, the new watch was ended %d times, the old one %d", asked.Load(), granted.ends.Load(), old.ends.Load())
		}
		w.Unregister(&old.member)
		w.Unregister(&granted.member)
	})
}

// TestSlowDecisions: one that waits for a webhook does not hold up the others.
func TestSlowDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy()
		w := run(t, p)
		var watches []*openWatch
		for i := range 500 {
			o := &openWatch{user: fmt.Sprint("user", i)}
			p.set(o.user, true)
			o.register(w)
			watches = append(watches, o)
		}
		time.Sleep(time.Second)
		p.mu.Lock()
		p.wait = func() { time.Sleep(50 * time.Millisecond) }
		clear(p.allowed)
		p.mu.Unlock()
		p.changes.Notify()
		time.Sleep(2 * time.Second)
		for _, o := range watches {
			if o.ends.Load() != 1 {
				t.Fatalf("a watch of %s was ended %d times", o.user, o.ends.Load())
			}
		}
	})
}

// TestUndecided: a decision that cannot be made ends nothing, and is asked for again.
func TestUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane")
		w := run(t, p)
		o := &openWatch{user: "jane"}
		o.register(w)
		time.Sleep(time.Second)
		p.mu.Lock()
		p.undecided, p.allowed["jane"] = true, false
		p.mu.Unlock()
		p.changes.Notify()
		time.Sleep(time.Minute)
		if asked := p.asked.Load(); o.ends.Load() != 0 || asked < 30 || asked > 100 {
			t.Errorf("ended %d times after %d questions", o.ends.Load(), asked)
		}
		p.mu.Lock()
		p.undecided = false
		p.mu.Unlock()
		time.Sleep(2 * time.Second)
		if o.ends.Load() != 1 {
			t.Error("the watch goes on after the decision could be made")
		}
	})
}

// TestRightsDiffer in everything that a decision may depend on.
func TestRightsDiffer(t *testing.T) {
	base := auth.Attributes{User: auth.User{Name: "jane", Groups: []string{"dev"}, Extra: map[string][]string{"a": {"1"}, "b": {"2"}}}, Verb: "watch", Resource: "pods"}
	same := base
	same.User.Extra = map[string][]string{"b": {"2"}, "a": {"1"}}
	a, b := Rights{Watch: &base}, Rights{Watch: &same}
	if !a.equal(&b) || a.hash() != b.hash() {
		t.Error("equal rights differ")
	}
	for name, change := range map[string]func(*auth.Attributes){
		"user":      func(a *auth.Attributes) { a.User.Name = "joe" },
		"uid":       func(a *auth.Attributes) { a.User.UID = "1" },
		"group":     func(a *auth.Attributes) { a.User.Groups = []string{"ops"} },
		"extra":     func(a *auth.Attributes) { a.User.Extra = map[string][]string{"a": {"1"}, "b": {"3"}} },
		"no extra":  func(a *auth.Attributes) { a.User.Extra = nil },
		"verb":      func(a *auth.Attributes) { a.Verb = "list" },
		"path":      func(a *auth.Attributes) { a.Path = "/x" },
		"API group": func(a *auth.Attributes) { a.Group = "apps" },
		"version":   func(a *auth.Attributes) { a.Version = "v2" },
		"resource":  func(a *auth.Attributes) { a.Resource = "nodes" },
		"sub":       func(a *auth.Attributes) { a.Subresource = "status" },
		"namespace": func(a *auth.Attributes) { a.Namespace = "a" },
		"name":      func(a *auth.Attributes) { a.Name = "a" },
		"selector":  func(a *auth.Attributes) { a.FieldSelector = "spec.nodeName=a" },
	} {
		other := base
		change(&other)
		o := Rights{Watch: &other}
		if a.equal(&o) {
			t.Errorf("rights that differ in %s are equal", name)
		}
		if name != "group" && a.hash() == o.hash() { // a user does not choose its groups
			t.Errorf("rights that differ in %s have one hash", name)
		}
	}
	other := base
	other.Name = "a"
	impersonating := func(rights ...auth.Attributes) *Rights {
		return &Rights{Watch: &base, Impersonation: []iter.Seq[auth.Attributes]{slices.Values(rights)}}
	}
	if o := impersonating(base); a.equal(o) || a.hash() == o.hash() {
		t.Error("rights with and without impersonation are equal")
	}
	if !impersonating(base, other).equal(impersonating(base, other)) {
		t.Error("equal rights to impersonate differ")
	}
	for _, o := range []*Rights{impersonating(base), impersonating(base, base), impersonating(base, other, base), impersonating()} {
		if one := impersonating(base, other); one.equal(o) || o.equal(one) {
			t.Error("other rights to impersonate are equal")
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	for _, groups := range []int{1, 100_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			w := New(Config{Authorizer: newPolicy(), Logger: slog.New(slog.DiscardHandler)})
			p := newPolicy()
			w.config.Authorizer = p
			watches := make([]*openWatch, groups)
			for i := range watches {
				watches[i] = &openWatch{user: fmt.Sprint("user", i)}
				p.allowed[watches[i].user] = true
				watches[i].register(w)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o := watches[i%groups]
				w.Unregister(&o.member)
				o.register(w)
			}
		})
	}
}

// TestChangeOfOneUser: a change that is about one user costs no decision about others, but
// for those that are impersonated.
func TestChangeOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane", "joe", "deputy", "boss")
		w := run(t, p)
		jane, joe := &openWatch{user: "jane"}, &openWatch{user: "joe"}
		boss := &openWatch{user: "boss"}
		jane.register(w)
		joe.register(w)
		rights := rightsOf("boss")
		rights.Impersonation = []iter.Seq[auth.Attributes]{slices.Values([]auth.Attributes{{User: auth.User{Name: "deputy"}, Verb: "impersonate"}})}
		w.Register(context.Background(), &boss.member, boss, rights)
		synctest.Wait()
		for _, step := range []struct {
			user  string
			asked int64
		}{{"jane", 3}, {"none", 2}, {"deputy", 2}, {"", 4}} {
			time.Sleep(time.Second)
			synctest.Wait()
			p.asked.Store(0)
			p.changes.NotifyUser(step.user)
			time.Sleep(time.Second)
			synctest.Wait()
			if n := p.asked.Load(); n != step.asked {
				t.Errorf("a change about %q: %d decisions, want %d", step.user, n, step.asked)
			}
		}
		w.Unregister(&boss.member)
		p.asked.Store(0)
		p.mu.Lock()
		p.allowed["jane"], p.allowed["joe"] = false, false
		p.mu.Unlock()
		p.changes.NotifyUser("none") // has no watches
		p.changes.NotifyUser("jane")
		time.Sleep(time.Second)
		synctest.Wait()
		if jane.ends.Load() != 1 || joe.ends.Load() != 0 || p.asked.Load() != 1 {
			t.Errorf("jane's watch ended %d times, joe's %d, after %d decisions", jane.ends.Load(), joe.ends.Load(), p.asked.Load())
		}
	})
}

// TestUndecidedForLong: a right holds for a while although nothing says so, and not for
// ever.
func TestUndecidedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("jane")
		w := run(t, p)
		jane := &openWatch{user: "jane"}
		jane.register(w)
		defer w.Unregister(&jane.member)
		undecided := func(is bool) {
			p.mu.Lock()
			p.undecided = is
			p.mu.Unlock()
			p.changes.Notify()
		}
		undecided(true)
		time.Sleep(maxUndecided - 2*time.Second)
		undecided(false)
		time.Sleep(2 * time.Second)
		undecided(true)
		time.Sleep(maxUndecided - 2*time.Second)
		synctest.Wait()
		if jane.ends.Load() != 0 || jane.member.Err() != nil {
			t.Errorf("the watch ended too early: %v", jane.member.Err())
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if err := jane.member.Err(); jane.ends.Load() != 1 || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("the watch ended %d times: %v", jane.ends.Load(), err)
		}
	})
}

// TestManyChangedUsers: the users that are kept until a pass are bounded; with more, it
// decides about all.
func TestManyChangedUsers(t *testing.T) {
	p := newPolicy("joe")
	w := New(Config{Authorizer: p, Logger: slog.New(slog.DiscardHandler)})
	joe := &openWatch{user: "joe"}
	joe.register(w)
	users := make([]openWatch, maxChangedUsers+1)
	for i := range users {
		users[i].user = fmt.Sprint("user", i)
		p.allowed[users[i].user] = true
		users[i].register(w)
	}
	for i := range users {
		if i < len(users)-1 || len(w.changedUsers) != maxChangedUsers {
			w.Changed(users[i].user)
		}
	}
	if n := len(w.takeChanged()); n != maxChangedUsers {
		t.Errorf("%d groups of %d users", n, maxChangedUsers)
	}
	for i := range users {
		w.Changed(users[i].user)
	}
	if n := len(w.takeChanged()); n != len(users)+1 || len(w.changedUsers) > 0 || w.allChanged {
		t.Errorf("%d groups of all, and %d users are left", n, len(w.changedUsers))
	}
	for i := range users {
		w.Unregister(&users[i].member)
	}
	w.Unregister(&joe.member)
	if len(w.byUser) > 0 || len(w.groups) > 0 {
		t.Errorf("%d users are left without a watch", len(w.byUser))
	}
}

// BenchmarkPass is one pass over so many groups, whose decisions cost next to nothing.
func BenchmarkPass(b *testing.B) {
	p := newPolicy()
	w := New(Config{Authorizer: p, Logger: slog.New(slog.DiscardHandler)})
	const groups = 100_000
	watches := make([]openWatch, groups)
	for i := range watches {
		watches[i].user = fmt.Sprint("user", i)
		p.allowed[watches[i].user] = true
		watches[i].register(w)
	}
	for b.Loop() {
		w.Changed("")
		w.pass(b.Context(), w.takeChanged())
	}
}

// broken panics when it is asked about one user.
type broken struct{ *policy }

func (b broken) Reauthorize(ctx context.Context, a auth.Attributes) (withdrawn, err error) {
	if a.User.Name == "panic" {
		panic("on purpose")
	}
	return b.policy.Reauthorize(ctx, a)
}

// TestPanics: an authorizer that panics ends neither the process nor a watch, and others'
// rights are decided.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy("panic", "jane")
		var text strings.Builder
		w := New(Config{Authorizer: broken{p}, Logger: slog.New(slog.NewTextHandler(&text, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		first, second := &openWatch{user: "panic"}, &openWatch{user: "jane"}
		first.register(w)
		second.register(w)
		p.set("jane", false)
		time.Sleep(2 * time.Second)
		if first.ends.Load() != 0 || second.ends.Load() != 1 {
			t.Errorf("ended %d and %d times", first.ends.Load(), second.ends.Load())
		}
		cancel()
		running.Wait()
		if !strings.Contains(text.String(), "on purpose") {
			t.Errorf("logged %q", text.String())
		}
	})
}
