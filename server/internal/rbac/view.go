package rbac

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// View is the set of namespaces in which roles and bindings allow a user to do something with
// all objects of a resource, as it was and is at each revision. Rules that name objects
// (resourceNames) do not count.
//
// It has a policy of its own, of the user's bindings alone, without their other subjects: a
// change of others costs it nothing. It is shared by all uses for the same user, and safe for
// concurrent use. Its caller must Close it.
type View struct {
	history  *History
	key      string
	user     auth.User
	subjects sets.Set[subject] // that are the user: its name and its groups
	asked    []auth.Attributes // all must be allowed; without namespace

	versions atomic.Pointer[[]viewVersion] // never empty, ascending; the slices are immutable
	expired  atomic.Bool

	// The fields below are guarded by the lock of the History.
	users       int
	policy      *policy
	subscribers map[watchcache.Waker]struct{}
}

// viewVersion is the set since a revision.
type viewVersion struct {
	since      storage.Revision
	namespaces *watchcache.Namespaces
}

const (
	// A view keeps this many versions, and this many names in them: a watch that is
	// slower than that gets a 410.
	maxVersions     = 1024
	maxVersionNames = 1 << 16
)

// View opens the view of the namespaces in which a user may do all of the verbs. It knows every
// revision from the given one on, if the history reaches back that far, and otherwise as
// many as it does; 0 asks for none but the present.
func (h *History) View(ctx context.Context, user auth.User, group, resource string, verbs []string, from storage.Revision) (*View, error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	if from > 0 {
		if err := h.reachBack(ctx, from); err != nil {
			return nil, err
		}
	}
	reached := h.Reached()
	key := viewKey(&user, group, resource, verbs)
	h.mu.Lock()
	defer h.mu.Unlock()
	if from == 0 {
		from = reached
	}
	v := h.sharedView(key, from)
	if v == nil {
		made, err := h.newView(ctx, key, user, group, resource, verbs, from)
		if err != nil {
			return nil, err
		}
		if v = h.sharedView(key, from); v == nil { // another request may have made one meanwhile
			v = made
			if old := h.shared[key]; old != nil && old.users == 0 {
				h.views.remove(old)
				h.idle = slices.DeleteFunc(h.idle, func(other *View) bool { return other == old })
			}
			h.views.add(v)
			h.shared[key] = v
		}
	}
	v.users++
	h.idle = slices.DeleteFunc(h.idle, func(other *View) bool { return other == v })
	return v, nil
}

// Known returns the latest set of namespaces of a view that another request has opened, nil if there is
// none. It does not wait.
func (h *History) Known(user auth.User, group, resource string, verbs []string) *watchcache.Namespaces {
	h.mu.Lock()
	v := h.shared[viewKey(&user, group, resource, verbs)]
	h.mu.Unlock()
	if v == nil {
		return nil
	}
	return v.Now()
}

// AllowsEverywhere reports whether roles and bindings allow a user a verb on all objects of a
// resource, by all that the caches show when it is called, which is what an Index decides by. It
// fails as View and Wait do.
func (h *History) AllowsEverywhere(ctx context.Context, user auth.User, group, resource, verb string) (bool, error) {
	var latest storage.Revision
	for _, s := range h.sources {
		latest = max(latest, s.cache.StateRevision())
	}
	if err := h.Wait(ctx, latest); err != nil {
		return false, err
	}
	v, err := h.View(ctx, user, group, resource, []string{verb}, 0)
	if err != nil {
		return false, err
	}
	defer v.Close()
	return v.Now().All(), nil
}

// sharedView returns the shared view of a key if it knows every revision from the given one
// on that the history knows, otherwise nil. The lock is held.
func (h *History) sharedView(key string, from storage.Revision) *View {
	v := h.shared[key]
	if v == nil || (*v.versions.Load())[0].since > h.clip(from) {
		return nil
	}
	return v
}

// clip returns the revision that the history knows and that is nearest to the given one.
func (h *History) clip(revision storage.Revision) storage.Revision {
	return min(max(revision, h.since), *h.reached.Load())
}

func viewKey(user *auth.User, group, resource string, verbs []string) string {
	return strings.Join(slices.Concat([]string{group, resource, strings.Join(verbs, ",")}, identity(user)), "\x00")
}

// identity is what of a user bindings can refer to.
func identity(user *auth.User) []string {
	groups := slices.Clone(user.Groups)
	slices.Sort(groups)
	return append([]string{user.Name}, slices.Compact(groups)...)
}

// Close ends the use of the view.
func (v *View) Close() {
	h := v.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.users--; v.users > 0 {
		return
	}
	if h.shared[v.key] != v {
		h.views.remove(v)
		return
	}
	h.idle = append(h.idle, v)
	if len(h.idle) > maxIdleViews {
		oldest := h.idle[0]
		h.idle = slices.Delete(h.idle, 0, 1)
		h.views.remove(oldest)
		delete(h.shared, oldest.key)
	}
}

// maxLockedChanges is how many changes a new view applies while the lock of the History is
// held. Each of them can ask the policy about all namespaces of the user.
const maxLockedChanges = 16

// newView makes a view whose first version is that of a revision, or of the nearest one that
// the history knows. The lock is held when it is called and when it returns, and released
// meanwhile: to apply thousands of changes must not delay other users.
func (h *History) newView(ctx context.Context, key string, user auth.User, group, resource string, verbs []string, from storage.Revision) (*View, error) {
	for {
		if h.behind {
			return nil, errors.Join(watchcache.ErrNotReady, errLost)
		}
		v := &View{history: h, key: key, user: user, subjects: subjectsOf(&user), policy: newPolicy(h.prepared.room), subscribers: map[watchcache.Waker]struct{}{}}
		for _, verb := range verbs {
			v.asked = append(v.asked, auth.Attributes{User: user, Verb: verb, Group: group, Resource: resource})
		}
		bindings := map[objectKey]*definition{}
		for _, g := range h.policy.of(&user, nil) {
			for key := range g.bindings() {
				bindings[key] = h.policy.find(true, key)
			}
		}
		first, rereads := h.clip(from), h.rereads
		applied := first
		w := h.window(first, bindings)
		h.mu.Unlock()
		v.begin(first, bindings, &w)
		err := v.replay(ctx, &w)
		h.mu.Lock()
		for err == nil && h.rereads == rereads {
			if applied = w.end(applied); applied < h.since {
				break
			}
			if w = h.window(applied, nil); len(w.changes) <= maxLockedChanges {
				return v, v.replay(ctx, &w)
			}
			h.mu.Unlock()
			err = v.replay(ctx, &w)
			h.mu.Lock()
		}
		if err != nil {
			return nil, err
		}
		// The changes after those that have been applied are lost: begin anew.
	}
}

// window is a part of the history, up to its end, that can be read without the lock.
type window struct {
	changes []change                  // immutable: trim copies
	roles   map[objectKey]*definition // before changes; with all that the bindings in changes refer to
}

// window returns the changes after a revision, and besides the roles before them that some
// bindings refer to. The lock is held.
func (h *History) window(after storage.Revision, bindings map[objectKey]*definition) window {
	i, _ := slices.BinarySearchFunc(h.changes, after+1, func(c change, r storage.Revision) int { return cmp.Compare(c.revision, r) })
	w := window{changes: h.changes[i:len(h.changes):len(h.changes)], roles: map[objectKey]*definition{}}
	note := func(d *definition) {
		if d == nil {
			return
		}
		if _, known := w.roles[d.role]; !known {
			w.roles[d.role] = h.policy.find(false, d.role)
		}
	}
	for _, d := range bindings {
		note(d)
	}
	for i := range w.changes {
		if c := &w.changes[i]; c.binding {
			note(c.before)
			note(c.after)
		}
	}
	for i := len(w.changes) - 1; i >= 0; i-- {
		if c := &w.changes[i]; !c.binding {
			w.roles[c.key] = c.before
		}
	}
	return w
}

// end returns the revision of the last change, or the one before the window if it is empty.
func (w *window) end(before storage.Revision) storage.Revision {
	if len(w.changes) == 0 {
		return before
	}
	return w.changes[len(w.changes)-1].revision
}

// begin makes the view what it was at the revision before a window. bindings are those of the
// user after the window.
func (v *View) begin(revision storage.Revision, bindings map[objectKey]*definition, w *window) {
	for i := len(w.changes) - 1; i >= 0; i-- {
		switch c := &w.changes[i]; {
		case !c.binding:
		case c.before != nil:
			bindings[c.key] = c.before
		default:
			delete(bindings, c.key)
		}
	}
	for key, d := range bindings {
		if subjects := v.own(d, key); len(subjects) > 0 {
			v.bind(key, &definition{role: d.role, subjects: subjects}, w.role)
		}
	}
	v.versions.Store(&[]viewVersion{{revision, v.compute()}})
}

// replay applies the changes of a window. It stops when ctx ends.
func (v *View) replay(ctx context.Context, w *window) error {
	for rest := w.changes; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 1
		for n < len(rest) && rest[n].revision == rest[0].revision {
			n++
		}
		changes := make([]change, n)
		for i := range rest[:n] {
			c := &rest[i]
			if c.binding {
				changes[i] = c.with(v.own(c.after, c.key))
			} else {
				w.roles[c.key], changes[i] = c.after, *c
			}
		}
		v.apply(rest[0].revision, changes, w.role)
		rest = rest[n:]
	}
	return nil
}

// role returns what a role says at the revision that is being applied.
func (w *window) role(key objectKey) *definition { return w.roles[key] }

// bindings yields the bindings that give something.
func (g *grants) bindings() map[objectKey]struct{} {
	keys := map[objectKey]struct{}{}
	add := func(s *scope) {
		for i := range s.roles {
			for _, by := range s.roles[i].by {
				keys[by.binding.key] = struct{}{}
			}
		}
	}
	add(&g.cluster)
	for _, s := range g.namespaces {
		add(s)
	}
	return keys
}

// subjectsOf returns the subjects by which bindings can refer to a user.
func subjectsOf(user *auth.User) sets.Set[subject] {
	subjects := sets.New(subject{name: user.Name})
	for _, group := range user.Groups {
		subjects.Insert(subject{isGroup: true, name: group})
	}
	return subjects
}

// own returns the subjects of a binding that are the user.
func (v *View) own(d *definition, key objectKey) (subjects []rbacv1.Subject) {
	if d == nil {
		return nil
	}
	for i := range d.subjects {
		if s, _ := subjectOf(&d.subjects[i], key.namespace); v.subjects.Has(s) {
			subjects = append(subjects, d.subjects[i])
		}
	}
	return subjects
}

// bind adds or replaces one of the user's bindings.
func (v *View) bind(key objectKey, d *definition, role func(objectKey) *definition) {
	v.unbind(key)
	v.policy.set(true, key, d)
	if rules := role(d.role); rules != nil {
		v.policy.set(false, d.role, rules)
	}
}

// unbind removes a binding, and its role if the user does not have it otherwise.
func (v *View) unbind(key objectKey) {
	b := v.policy.bindings[key]
	if b == nil {
		return
	}
	v.policy.removeBinding(key)
	if b.role.bindings == 0 {
		v.policy.removeRole(b.role.key)
	}
}

// apply applies the changes of one revision, and reports whether the set is another one
// since. A binding in them has no subjects but the user's, and is nil without any. The lock of
// the History is held, or nothing else has the view yet.
func (v *View) apply(revision storage.Revision, changes []change, role func(objectKey) *definition) (changed bool) {
	touched := false
	for i := range changes {
		switch c := &changes[i]; {
		case !c.binding && v.policy.roles[c.key] == nil:
		case !c.binding:
			v.policy.set(false, c.key, role(c.key)) // c.after, which may be compiled already
			touched = true
		case c.after != nil:
			v.bind(c.key, c.after, role)
			touched = true
		case v.policy.bindings[c.key] != nil:
			v.unbind(c.key)
			touched = true
		}
	}
	if !touched {
		return false
	}
	versions := *v.versions.Load()
	last, now := versions[len(versions)-1], v.compute()
	if last.namespaces.Equal(now) {
		return false
	}
	versions = append(slices.Clone(versions), viewVersion{revision, now})
	names := 0
	for i := len(versions) - 1; i >= 0; i-- {
		if names += len(versions[i].namespaces.Names()); i > 0 && (names > maxVersionNames || len(versions)-i >= maxVersions) {
			versions = slices.Clone(versions[i:])
			break
		}
	}
	v.versions.Store(&versions)
	return true
}

// compute asks the policy.
func (v *View) compute() *watchcache.Namespaces {
	if v.allowed("") {
		return watchcache.AllNamespaces()
	}
	names := map[string]struct{}{}
	for _, g := range v.policy.of(&v.user, nil) {
		for namespace := range g.namespaces {
			if _, known := names[namespace]; !known && v.allowed(namespace) {
				names[namespace] = struct{}{}
			}
		}
	}
	return watchcache.NewNamespaces(slices.Collect(maps.Keys(names)))
}

func (v *View) allowed(namespace string) bool {
	for i := range v.asked {
		asked := v.asked[i]
		asked.Namespace = namespace
		if _, allowed, _ := v.policy.decide(&asked); !allowed {
			return false
		}
	}
	return true
}

// expire ends the view: what follows is not known. It returns what is to be woken.
func (v *View) expire() []watchcache.Waker {
	v.expired.Store(true)
	return v.wakers()
}

func (v *View) wakers() []watchcache.Waker { return slices.Collect(maps.Keys(v.subscribers)) }

// Wait blocks until every change up to a revision has been applied. It fails with ctx's
// error, and as watchcache.Cache.NotOlderThan does.
func (v *View) Wait(ctx context.Context, revision storage.Revision) error {
	return v.history.Wait(ctx, revision)
}

// Reached returns the revision up to which every change has been applied.
func (v *View) Reached() storage.Revision { return v.history.Reached() }

// At returns the set at a revision, which must have been Reached. It fails with an
// ExpiredError if that is not known any more.
func (v *View) At(revision storage.Revision) (*watchcache.Namespaces, error) {
	versions := *v.versions.Load()
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].since <= revision {
			return versions[i].namespaces, v.err(revision)
		}
	}
	return nil, &watchcache.ExpiredError{Requested: revision, Oldest: versions[0].since}
}

// Now returns the latest set.
func (v *View) Now() *watchcache.Namespaces {
	versions := *v.versions.Load()
	return versions[len(versions)-1].namespaces
}

// Next returns the first change of the set after a revision, and 0 if there is none among
// those that have been Reached. It fails as At does.
func (v *View) Next(after storage.Revision) (at storage.Revision, set *watchcache.Namespaces, err error) {
	versions := *v.versions.Load()
	if versions[0].since > after {
		return 0, nil, &watchcache.ExpiredError{Requested: after, Oldest: versions[0].since}
	}
	for i := range versions {
		if versions[i].since > after {
			return versions[i].since, versions[i].namespaces, v.err(after)
		}
	}
	return 0, nil, v.err(after)
}

func (v *View) err(requested storage.Revision) error {
	if v.expired.Load() {
		return &watchcache.ExpiredError{Requested: requested, Oldest: v.history.Reached()}
	}
	return nil
}

// Subscribe has waker woken whenever the set has changed, until Unsubscribe.
func (v *View) Subscribe(waker watchcache.Waker) {
	v.history.mu.Lock()
	defer v.history.mu.Unlock()
	v.subscribers[waker] = struct{}{}
}

// Unsubscribe has waker woken no more.
func (v *View) Unsubscribe(waker watchcache.Waker) {
	v.history.mu.Lock()
	delete(v.subscribers, waker)
	v.history.mu.Unlock()
	v.history.forget(waker)
}

// Await has waker woken once when a revision has been reached.
func (v *View) Await(revision storage.Revision, waker watchcache.Waker) {
	v.history.await(revision, waker)
}
