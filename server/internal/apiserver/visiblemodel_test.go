package apiserver

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

var (
	visibleSeed  = flag.Uint64("visible.seed", 0, "seed of the random histories of filtered watches; 0: another each time")
	visibleSteps = flag.Int("visible.steps", 1000, "steps of each random history of filtered watches")
)

// history is what a model knows of a cluster: the states and the policies at all revisions.
type history struct {
	states   map[storage.Revision]map[string]storage.Revision // pods by key
	policies map[storage.Revision]map[string]bool             // namespaces of the user; "" is all
	latest   storage.Revision
}

// note adds a revision, at which f changes copies of the latest state and policy.
func (h *history) note(revision storage.Revision, f func(state map[string]storage.Revision, policy map[string]bool)) {
	state, policy := maps.Clone(h.states[h.latest]), maps.Clone(h.policies[h.latest])
	if state == nil {
		state, policy = map[string]storage.Revision{}, map[string]bool{}
	}
	for at := h.latest + 1; at < revision; at++ { // of writes that change neither
		h.states[at], h.policies[at] = maps.Clone(state), maps.Clone(policy)
	}
	f(state, policy)
	h.states[revision], h.policies[revision] = state, policy
	h.latest = revision
}

func (h *history) sees(at storage.Revision, namespace string) bool {
	return h.policies[at][""] || h.policies[at][namespace]
}

// visible is the formula: the objects of state(V) in namespaces that policy(V) allows.
func (h *history) visible(at storage.Revision, selected func(key string) bool) map[string]storage.Revision {
	out := map[string]storage.Revision{}
	for key, revision := range h.states[at] {
		if namespace, _, _ := strings.Cut(key, "/"); h.sees(at, namespace) && selected(key) {
			out[key] = revision
		}
	}
	return out
}

// visibleClient follows a filtered watch and checks everything that it gets.
type visibleClient struct {
	t        *testing.T
	c        *cluster
	model    *history
	user     auth.User
	selector string
	awake    chan struct{}
	log      []string

	holds   map[string]storage.Revision
	version storage.Revision // that it would resume from
	partial bool             // it has a part of the initial state
	honest  bool             // it takes no version back, as ours; others take that of any event
	view    *rbac.View
	watch   *read.Watch
	sent    storage.Revision // the latest revision that was sent by this watch

	bookmarks, expired, resumes, identities int
}

// Wake implements watchcache.Waker.
func (v *visibleClient) Wake() watchcache.Starter {
	select {
	case v.awake <- struct{}{}:
	default:
	}
	return nil
}

func (v *visibleClient) selected(key string) bool {
	return v.selector == "" || strings.HasSuffix(key, "/"+strings.TrimPrefix(v.selector, "name="))
}

func (v *visibleClient) scope(from storage.Revision) read.Scope {
	view, err := v.c.visible.View(v.t.Context(), v.user, "", "pods", []string{"list", "watch"}, from)
	must(v.t, err)
	v.view = view
	return read.Scope{Resource: v.c.pods, Visible: view}
}

func (v *visibleClient) list() {
	scope := v.scope(0)
	defer scope.Visible.(*rbac.View).Close()
	page, err := v.c.server.reader.List(v.t.Context(), scope, &metav1.ListOptions{LabelSelector: v.selector})
	must(v.t, err)
	v.holds = map[string]storage.Revision{}
	for o := range page.Items {
		v.holds[o.Key] = o.Revision
	}
	_, err = fmt.Sscan(page.Meta.ResourceVersion, &v.version)
	must(v.t, err)
	v.partial = false
	v.check("list", v.version)
}

// open begins a watch where the client is, or with initial events.
func (v *visibleClient) open(initial bool) {
	v.sent = 0
	initial = initial || v.partial // a client that has a part of the state knows no version yet
	opts := metav1.ListOptions{LabelSelector: v.selector, AllowWatchBookmarks: true, ResourceVersion: fmt.Sprint(v.version)}
	if initial {
		opts.SendInitialEvents, opts.ResourceVersionMatch, opts.ResourceVersion = new(true), metav1.ResourceVersionMatchNotOlderThan, ""
		v.holds, v.partial = map[string]storage.Revision{}, true
	}
	from, err := read.OldestRevision(&opts)
	must(v.t, err)
	scope := v.scope(from)
	watch, err := v.c.server.reader.Watch(scope, &opts)
	must(v.t, err)
	v.watch = &watch
	v.resumes++
	v.logf("open at %q, holding %v", opts.ResourceVersion, v.holds)
	if err := watch.Open(v.t.Context(), v); err != nil {
		v.fail(err)
	}
}

func (v *visibleClient) logf(format string, args ...any) {
	v.log = append(v.log, fmt.Sprintf(format, args...))
}

// fail handles the error that ends a watch: a 410, after which the client lists.
func (v *visibleClient) fail(err error) {
	if !apierrors.IsResourceExpired(err) {
		v.t.Fatalf("the watch failed: %v\n%s", err, strings.Join(v.log, "\n"))
	}
	v.expired++
	v.logf("410")
	v.watch = nil
	v.view.Close()
	v.list()
	v.open(false)
}

func (v *visibleClient) close() {
	if v.watch != nil {
		v.watch.Close()
		v.view.Close()
		v.watch = nil
	}
}

// apply takes events, and fails on a leak.
func (v *visibleClient) apply(events []watchcache.Event) {
	for _, e := range events {
		key := e.Object.Key
		namespace, _, _ := strings.Cut(key, "/")
		v.logf("%s %s@%d", e.Type, key, e.Revision)
		if e.Type == watchcache.Deleted {
			delete(v.holds, key)
			if !strings.Contains(string(e.Object.JSON()), "spec") {
				v.identities++
			}
		} else {
			if now := v.model.latest; !v.sees(max(e.Revision, v.sent), now, namespace) || !v.model.sees(now, namespace) {
				v.t.Fatalf("LEAK: %s %s@%d, sent after %d, is not visible up to %d\n%s", e.Type, key, e.Revision, v.sent, now, strings.Join(v.log, "\n"))
			}
			v.holds[key] = e.Revision
		}
		v.sent = max(v.sent, e.Revision)
		if v.version = e.Revision; v.honest {
			v.version = max(v.version, v.sent)
		}
	}
}

// sees reports whether a namespace is visible at some revision between two.
func (v *visibleClient) sees(from, to storage.Revision, namespace string) bool {
	for at := from; at <= to; at++ {
		if v.model.sees(at, namespace) {
			return true
		}
	}
	return false
}

// check compares what the client holds with what is visible at a revision.
func (v *visibleClient) check(what string, at storage.Revision) {
	v.t.Helper()
	if want := v.model.visible(at, v.selected); !maps.Equal(v.holds, want) {
		v.t.Fatalf("%s at %d: the client holds %v, and %v is visible\n%s", what, at, v.holds, want, strings.Join(v.log, "\n"))
	}
}

// step reads at most some events; it returns false if there are none.
func (v *visibleClient) step(limit int) bool {
	must(v.t, v.c.visible.Wait(v.t.Context(), v.model.latest)) // so that what was withdrawn may not be sent from now on
	buf := make([]watchcache.Event, limit)
	n, err := v.watch.Read(buf)
	v.apply(buf[:n])
	if err != nil {
		v.fail(err)
		return true
	}
	return n > 0
}

// settle reads until the client has everything, and compares.
func (v *visibleClient) settle() {
	deadline := time.After(3 * time.Minute)
	for {
		for v.step(7) {
		}
		v.watch.BookmarkNow()
		if b, due := v.watch.TakeBookmark(); due {
			v.bookmarks++
			v.logf("BOOKMARK %d", b.Revision)
			v.version, v.sent = b.Revision, max(v.sent, b.Revision)
			v.partial = v.partial && !b.InitialEventsEnd
			v.check("bookmark", b.Revision)
			if b.Revision >= v.model.latest {
				return
			}
		}
		timer := time.NewTimer(max(time.Millisecond, min(v.watch.UntilDue(), 200*time.Millisecond)))
		select {
		case <-v.awake:
		case <-timer.C:
		case <-deadline:
			v.t.Fatalf("the watch does not reach %d\n%s", v.model.latest, strings.Join(v.log, "\n"))
		}
		timer.Stop()
	}
}

// TestVisibleHistories lets random clients follow random writes, grants and withdrawals, in
// steps of random sizes, with random breaks, and compares what each holds with what is
// visible, at every bookmark; and every event with what was visible when it was sent.
func TestVisibleHistories(t *testing.T) {
	for _, test := range []struct {
		name  string
		cache watchcache.Options
	}{
		{"exact", watchcache.Options{}},
		{"short", watchcache.Options{HistoryEvents: 24}},
		{"expiring", watchcache.Options{HistoryEvents: 12, ExactHistory: true}},
	} {
		for run := range 2 {
			t.Run(fmt.Sprint(test.name, run), func(t *testing.T) {
				t.Parallel()
				seed := *visibleSeed
				if seed == 0 {
					seed = rand.Uint64()
				}
				t.Logf("-visible.seed=%d", seed)
				runVisibleHistory(t, rand.New(rand.NewPCG(seed, uint64(run))), test.cache)
			})
		}
	}
}

type visibleRun struct {
	*cluster
	random  *rand.Rand
	model   *history
	bound   map[string]bool // "namespace role" of bindings
	clients []*visibleClient
}

func runVisibleHistory(t *testing.T, random *rand.Rand, options watchcache.Options) {
	c := rbacCluster(t, []string{"jane"}, func(s *setup) {
		s.visible = true
		options.FreshnessWait = time.Minute
		s.cache = options
	})
	c.grantRole("editor", []string{"*"}, "", "*")
	r := &visibleRun{cluster: c, random: random, bound: map[string]bool{},
		model: &history{states: map[storage.Revision]map[string]storage.Revision{}, policies: map[storage.Revision]map[string]bool{}}}
	r.model.note(r.current(), func(map[string]storage.Revision, map[string]bool) {})
	for i := range 6 {
		client := &visibleClient{t: t, c: c, model: r.model, user: auth.User{Name: "jane"}, awake: make(chan struct{}, 1), honest: i%2 == 0}
		if i >= 4 {
			client.selector = "name=p1"
		}
		client.list()
		client.open(random.IntN(2) == 0)
		defer client.close()
		r.clients = append(r.clients, client)
	}
	for range *visibleSteps {
		r.step()
	}
	var bookmarks, expired, resumes, identities int
	for _, client := range r.clients {
		if client.watch == nil {
			client.open(false)
		}
		client.settle()
		bookmarks, expired, resumes, identities = bookmarks+client.bookmarks, expired+client.expired, resumes+client.resumes, identities+client.identities
	}
	t.Logf("%d bookmarks, %d watches, %d of them 410, %d deletions without content", bookmarks, resumes, expired, identities)
}

func (r *visibleRun) current() storage.Revision {
	revision, err := r.store.Current(context.Background())
	must(r.t, err)
	return revision
}

func (r *visibleRun) step() {
	namespace := string(rune('a' + r.random.IntN(5)))
	switch n := r.random.IntN(100); {
	case n < 40:
		name := fmt.Sprint("p", r.random.IntN(4))
		revision := r.put(testPod(namespace, name, map[string]string{"name": name}, ""))
		r.model.note(revision, func(state map[string]storage.Revision, _ map[string]bool) { state[namespace+"/"+name] = revision })
	case n < 50:
		keys := slices.Sorted(maps.Keys(r.model.states[r.model.latest]))
		if len(keys) == 0 {
			return
		}
		key := keys[r.random.IntN(len(keys))]
		in, name, _ := strings.Cut(key, "/")
		r.model.note(r.remove(in, name), func(state map[string]storage.Revision, _ map[string]bool) { delete(state, key) })
	case n < 64:
		if r.random.IntN(6) == 0 {
			namespace = ""
		}
		r.toggle(namespace, []string{"watcher", "editor"}[r.random.IntN(2)])
	case n < 72:
		client := r.clients[r.random.IntN(len(r.clients))]
		client.close()
	default:
		client := r.clients[r.random.IntN(len(r.clients))]
		switch {
		case client.watch == nil:
			client.open(r.random.IntN(8) == 0)
		case n < 86:
			client.step(1 + r.random.IntN(5))
		default:
			client.settle()
		}
	}
}

// toggle binds a role or takes the binding away.
func (r *visibleRun) toggle(namespace, role string) {
	key := namespace + " " + role
	if r.bound[key] {
		r.unbind(namespace, role, "jane")
	} else {
		r.bind(namespace, role, "jane")
	}
	r.bound[key] = !r.bound[key]
	r.model.note(r.current(), func(_ map[string]storage.Revision, policy map[string]bool) {
		policy[namespace] = r.bound[namespace+" watcher"] || r.bound[namespace+" editor"]
	})
}
