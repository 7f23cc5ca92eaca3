package rbac

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// largeBinding gives a ClusterRole to very many users and to one more.
func largeBinding(namespace, role, name string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: named(namespace, "large"), RoleRef: roleRef("ClusterRole", role)}
	for _, n := range append(numbered(name+"-", 1000), name) {
		b.Subjects = append(b.Subjects, user(n))
	}
	return b
}

// manyResources is a rule that makes a role a large one.
func manyResources() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: numbered("a-resource-", 1000)}
}

// countDecoded counts the objects that are decoded while decisions or filtered lists wait.
func countDecoded(x *Index) *atomic.Int64 {
	n := new(atomic.Int64)
	x.prepared.decode = func(ctx context.Context, r registry.Registry, o *watchcache.Object) (definition, error) {
		n.Add(1)
		return define(ctx, r, o)
	}
	return n
}

// expectKept compares how many writes are kept.
func expectKept(t *testing.T, p *preparer, want int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, bytes, byNamespace := 0, 0, map[string]int{}
	for key, writes := range p.byKey {
		for _, w := range writes {
			kept, bytes = kept+1, bytes+w.bytes
			byNamespace[key.namespace] += w.bytes
		}
	}
	if kept != want || int64(kept) != p.writes.Load() || bytes != p.bytes || !maps.Equal(byNamespace, p.byNamespace) {
		t.Errorf("%d writes are kept, want %d; counted are %d, and %d bytes of %d: %v of %v", kept, want, p.writes.Load(), p.bytes, bytes, p.byNamespace, byNamespace)
	}
}

func (f *fixture) update(plural string, obj resource.Object) (storage.Revision, error) {
	f.Helper()
	result, err := f.of(plural).Update(context.Background(), obj.GetNamespace(), obj.GetName(), func(resource.Object) (resource.Object, error) {
		return obj.DeepCopyObject().(resource.Object), nil
	}, registry.UpdateOptions{Unconditional: true})
	if err != nil {
		return 0, err
	}
	return result.Revision, nil
}

// awaitCaches waits until the caches show all writes that have been acknowledged: decisions wait for a few seconds only.
func (f *fixture) awaitCaches(ctx context.Context) {
	f.Helper()
	revision, err := f.store.Current(ctx)
	for _, cache := range f.caches {
		if err == nil {
			_, err = cache.NotOlderThan(ctx, revision)
		}
	}
	if err != nil {
		f.Error(err)
	}
}

// mayList asks whether a user may list the pods of a namespace.
func mayList(t *testing.T, x *Index, name, namespace string) bool {
	t.Helper()
	decision, _, err := x.Authorize(t.Context(), auth.Attributes{User: auth.User{Name: name}, Verb: "list", Version: "v1", Resource: "pods", Namespace: namespace})
	if err != nil {
		t.Error(err)
	}
	return decision == auth.Allow
}

// TestLargeObjectsAreDecodedByTheirWriters, and neither while decisions wait nor while filtered lists do.
func TestLargeObjectsAreDecodedByTheirWriters(t *testing.T) {
	f, ctx := newFixture(t), within(t)
	f.create("clusterroles", clusterRole("lister", rule("list", "", "pods")))
	f.start()
	x := f.index()
	decoded := countDecoded(x)
	h := x.NewHistory()
	mayList(t, x, "jane", "a")
	v, err := openView(ctx, h, "joe", 0)
	must(t, err)
	defer v.Close()
	x.prepared.follow(indexReader)
	decoded.Store(0)

	f.create("rolebindings", largeBinding("a", "lister", "jane"))
	f.awaitCaches(ctx)
	if !mayList(t, x, "jane", "a") {
		t.Error("a large binding does not count")
	}
	revision, err := f.update("rolebindings", largeBinding("a", "lister", "joe"))
	must(t, err)
	must(t, h.Wait(ctx, revision))
	if mayList(t, x, "jane", "a") || !mayList(t, x, "joe", "a") || !v.Now().Has("a") {
		t.Error("a large binding that was changed does not count")
	}
	revision, err = f.update("clusterroles", clusterRole("lister", rule("get", "", "pods"), manyResources(), rule("list", "", "pods")))
	must(t, err)
	must(t, h.Wait(ctx, revision))
	if !mayList(t, x, "joe", "a") || !v.Now().Has("a") {
		t.Error("a large role does not count")
	}
	if n := decoded.Load(); n != 0 {
		t.Errorf("%d objects were decoded while others waited", n)
	}
	expectKept(t, x.prepared, 0)
	for _, c := range h.changes {
		if c.before != nil && c.before.compiled != nil || c.after != nil && c.after.compiled != nil {
			t.Error("the history has compiled rules")
		}
	}

	f.create("clusterroles", clusterRole("small", rule("get", "", "pods")))
	f.awaitCaches(ctx)
	mayList(t, x, "joe", "a")
	if n := decoded.Load(); n != 1 {
		t.Errorf("a small role was decoded %d times, want 1", n)
	}
}

// changing is a store that changes what is written, or refuses it as too large if it has managedFields.
type changing struct {
	storage.Store
	change func(value []byte) ([]byte, error)
}

func (s *changing) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	value, err := s.change(value)
	if err != nil {
		return 0, err
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// TestOtherObjectsAreDecoded: what is stored decides, whatever was prepared.
func TestOtherObjectsAreDecoded(t *testing.T) {
	store := &changing{}
	f := newFixtureWith(t, func(s storage.Store) storage.Store {
		store.Store = s
		return store
	})
	same := func(value []byte) ([]byte, error) { return value, nil }
	store.change = same
	f.create("clusterroles", clusterRole("lister", rule("list", "", "pods")))
	f.start()
	x := f.index()
	x.prepared.keepFor = time.Hour
	x.prepared.follow(indexReader)
	decoded := countDecoded(x)
	mayList(t, x, "jane", "a")
	other, err := registry.NewSet(registry.Config{Store: f.store, Resources: f.set.Resources()})
	must(t, err)
	for _, step := range []struct {
		what          string
		change        func([]byte) ([]byte, error)
		other         bool
		decoded, kept int
	}{
		{"as it was written", same, false, 0, 0},
		{"other subjects of the same length", func(value []byte) ([]byte, error) {
			return bytes.ReplaceAll(value, []byte(`"evil"`), []byte(`"jane"`)), nil
		}, false, 1, 1},
		{"without managedFields", func(value []byte) ([]byte, error) {
			if bytes.Contains(value, []byte("managedFields")) {
				return nil, storage.ErrTooLarge
			}
			return value, nil
		}, false, 0, 1},
		{"another server", same, true, 1, 1},
	} {
		decoded.Store(0)
		store.change = step.change
		name, set := "jane", f.set
		if step.decoded > 0 && !step.other {
			name = "evil"
		}
		if step.other {
			set = other
		}
		r, _ := set.Lookup(rbacv1.GroupName, "v1", "rolebindings")
		_, err := r.Create(t.Context(), "a", largeBinding("a", "lister", name), registry.WriteOptions{})
		must(t, err)
		f.awaitCaches(t.Context())
		if !mayList(t, x, "jane", "a") || mayList(t, x, "evil", "a") {
			t.Errorf("%s: what was stored does not count", step.what)
		}
		if n := decoded.Load(); n != int64(step.decoded) {
			t.Errorf("%s: decoded %d times, want %d", step.what, n, step.decoded)
		}
		expectKept(t, x.prepared, step.kept)
		f.delete("rolebindings", "a", "large")
	}
}

// written is a binding as a write of it stores it.
func (f *fixture) written(x *Index, name string) (*source, []byte) {
	f.Helper()
	s := x.sources[3]
	stored, err := s.registry.Resource().Encode(context.Background(), largeBinding("a", "lister", name))
	must(f, err)
	return s, stored
}

// event is the object of the event of a write.
func (f *fixture) event(s *source, stored []byte, revision storage.Revision) *watchcache.Object {
	f.Helper()
	o, err := s.registry.Cache().Decode("a/large", stored, revision)
	must(f, err)
	return o
}

// TestWritesOfOneObject: each event takes what its own write has prepared, once for each reader.
func TestWritesOfOneObject(t *testing.T) {
	f := newFixture(t)
	x := f.index()
	p, key := x.prepared, objectKey{"a", "large"}
	s, jane := f.written(x, "jane")
	_, joe := f.written(x, "joe1")
	if p.prepare(t.Context(), s, key, jane) != nil {
		t.Error("prepared before the caches were read")
	}
	p.follow(indexReader)
	p.follow(historyReader)
	end := map[string]func(registry.Outcome){}
	for name, stored := range map[string][]byte{"jane": jane, "jane again": jane, "joe": joe} {
		end[name] = p.prepare(t.Context(), s, key, stored)
	}
	expectKept(t, p, 3)
	take := func(by reader, stored []byte, revision storage.Revision, want string) {
		t.Helper()
		got := ""
		if d := p.take(by, s.registry.Resource(), f.event(s, stored, revision)); d != nil {
			got = d.subjects[len(d.subjects)-1].Name
		}
		if got != want {
			t.Errorf("the event at %d gives %q, want %q", revision, got, want)
		}
	}
	take(indexReader, joe, 5, "joe1")
	take(indexReader, joe, 6, "")
	take(historyReader, joe, 5, "joe1")
	expectKept(t, p, 2)
	end["joe"](registry.Committed) // after its event
	take(indexReader, jane, 7, "jane")
	take(indexReader, jane, 8, "jane")
	take(indexReader, jane, 9, "")
	end["jane"](registry.Refused)
	expectKept(t, p, 1)
	take(historyReader, jane, 7, "jane")
	end["jane again"](registry.Committed)
	expectKept(t, p, 0)
}

// TestSupersededEvents: of several events of an object that are applied together, the last is decoded, and nothing is left
// of the others.
func TestSupersededEvents(t *testing.T) {
	f := newFixture(t)
	x := f.index()
	decoded := countDecoded(x)
	x.prepared.follow(indexReader)
	var events []watchcache.Event
	for i := range 5 {
		s, stored := f.written(x, fmt.Sprint("user", i))
		if i < 2 {
			x.prepared.prepare(t.Context(), s, objectKey{"a", "large"}, stored)
		}
		events = append(events, watchcache.Event{Type: watchcache.Modified, Object: f.event(s, stored, storage.Revision(i+1))})
	}
	expectKept(t, x.prepared, 2)
	x.apply(t.Context(), x.sources[3], events)
	if b := x.policy.bindings[objectKey{"a", "large"}]; decoded.Load() != 1 || b.subjects[1000] != user("user4") {
		t.Errorf("%d are decoded, and the last subject is %+v", decoded.Load(), b.subjects[1000])
	}
	expectKept(t, x.prepared, 0)
	events[4].Type = watchcache.Deleted
	x.apply(t.Context(), x.sources[3], events)
	if decoded.Load() != 1 || len(x.policy.bindings) > 0 || len(x.sources[3].keys) > 0 {
		t.Errorf("%d are decoded; %d bindings are left of a deleted one", decoded.Load(), len(x.policy.bindings))
	}
}

// TestPreparedWritesAreBounded: by writes of one object, and by time if their events do not come.
func TestPreparedWritesAreBounded(t *testing.T) {
	f := newFixture(t)
	s, stored := f.written(f.index(), "jane")
	synctest.Test(t, func(t *testing.T) {
		p := newPreparer(nil, newCompiledRoom(maxCompiledBytes))
		p.follow(indexReader)
		var ends []func(registry.Outcome)
		for i := range maxPreparedWrites + 3 {
			end := p.prepare(t.Context(), s, objectKey{"a", "large"}, stored)
			if (end != nil) != (i < maxPreparedWrites) {
				t.Errorf("write %d of an object is kept: %v", i, end != nil)
			}
			ends = append(ends, end)
		}
		expectKept(t, p, maxPreparedWrites)
		for i, end := range ends[:maxPreparedWrites] {
			end([]registry.Outcome{registry.Committed, registry.Unknown, registry.Refused}[i%3])
		}
		expectKept(t, p, 6)
		time.Sleep(keepPrepared + 1)
		synctest.Wait()
		expectKept(t, p, 0)
	})
}

// TestWritesWaitForRoom: those of one namespace do not take that of others, and each gets some in the end. What decisions
// do not wait for makes room at once.
func TestWritesWaitForRoom(t *testing.T) {
	f := newFixture(t)
	s, stored := f.written(f.index(), "jane")
	res := s.registry.Resource()
	key, event := objectKey{"a", "large"}, f.event(s, stored, 5)
	synctest.Test(t, func(t *testing.T) {
		p := newPreparer(nil, newCompiledRoom(maxCompiledBytes))
		p.maxBytes = namespaceShare * (preparedRoom + 1) * len(stored)
		p.follow(indexReader)
		p.follow(historyReader)
		var writing sync.WaitGroup
		begun := time.Now()
		for i := range 20 {
			writing.Go(func() {
				end := p.prepare(t.Context(), s, key, stored)
				if end == nil {
					t.Errorf("write %d of many is not prepared", i)
					return
				}
				time.Sleep(time.Second / 10) // for which the store takes
				end(registry.Committed)
				if p.take(indexReader, res, event) == nil {
					t.Errorf("write %d of many is not kept", i)
				}
			})
		}
		synctest.Wait()
		end := p.prepare(t.Context(), s, objectKey{"b", "large"}, stored)
		if end == nil || time.Since(begun) > 0 {
			t.Errorf("a write of another namespace is prepared after %v", time.Since(begun))
		}
		end(registry.Refused)
		writing.Wait()

		p.prepare(t.Context(), s, objectKey{"a", "1"}, stored)(registry.Unknown)
		begun = time.Now()
		if p.prepare(t.Context(), s, objectKey{"a", "2"}, stored) == nil || time.Since(begun) > 0 {
			t.Error("a write that may never come keeps others out")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if p.prepare(ended, s, objectKey{"a", "3"}, stored) != nil || time.Since(begun) > 0 {
			t.Error("a write waits for room that has ended")
		}
		if p.prepare(t.Context(), s, objectKey{"a", "3"}, stored) != nil || time.Since(begun) != roomWait {
			t.Errorf("a write waits for %v, want %v", time.Since(begun), roomWait)
		}
		if n := testutil.ToFloat64(p.unprepared); n != 2 {
			t.Errorf("%v writes are not prepared, want 2", n)
		}
	})
}

// TestRolesAreCompiledIfBound: the rules of others may never be asked.
func TestRolesAreCompiledIfBound(t *testing.T) {
	f := newFixture(t)
	x := f.index()
	s := x.sources[0]
	stored, err := s.registry.Resource().Encode(t.Context(), clusterRole("r", manyResources()))
	must(t, err)
	bytes := map[bool]int{}
	for _, bound := range []bool{false, true} {
		p := newPreparer(func(role objectKey) bool { return bound && role == objectKey{name: "r"} }, newCompiledRoom(maxCompiledBytes))
		p.follow(indexReader)
		p.prepare(t.Context(), s, objectKey{name: "r"}, stored)
		expectKept(t, p, 1)
		bytes[bound] = p.bytes
	}
	if more := bytes[true] - bytes[false]; more != 1000*keyBytes {
		t.Errorf("a role that is bound takes %d bytes more", more)
	}

	x.policy.setRole(objectKey{name: "r"}, []rbacv1.PolicyRule{manyResources()})
	if x.isBound(objectKey{name: "r"}) {
		t.Error("a role is bound to nobody")
	}
	x.policy.setBinding(objectKey{"a", "b"}, roleRef("ClusterRole", "r"), []rbacv1.Subject{user("jane")})
	x.policy.decide(&auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Version: "v1", Resource: "pods", Namespace: "a"})
	if x.policy.roles[objectKey{name: "r"}].compiled.compiled.Load() == nil {
		t.Error("the rules of a role that was asked are not compiled")
	}
	if !x.isBound(objectKey{name: "r"}) {
		t.Error("a role is not bound")
	}
	x.policy.removeBinding(objectKey{"a", "b"})
	if x.policy.roles[objectKey{name: "r"}].compiled.compiled.Load() != nil {
		t.Error("the rules of a role that is not bound any more stay compiled")
	}
}

// TestPreparedDefinitionsOwnTheirMemory: they do not keep the JSON that they were decoded from.
func TestPreparedDefinitionsOwnTheirMemory(t *testing.T) {
	f := newFixture(t)
	x := f.index()
	_, stored := f.written(x, "jane")
	d := decodeStored(t.Context(), x.sources[3].registry.Resource(), "a", stored)
	clear(stored)
	for i, s := range d.subjects[:1000] {
		if want := user(fmt.Sprint("jane-", i)); s != want {
			t.Fatalf("subject %d is %+v, want %+v", i, s, want)
		}
	}
	if want := (objectKey{name: "lister"}); d.role != want {
		t.Errorf("the role is %v, want %v", d.role, want)
	}
	role := clusterRole("r", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"g7"}, Resources: numbered("r", 40)})
	res := x.sources[0].registry.Resource()
	stored, err := res.Encode(t.Context(), role)
	must(t, err)
	d = decodeStored(t.Context(), res, "", stored)
	clear(stored)
	if !slices.EqualFunc(d.rules, role.Rules, equalRules) {
		t.Errorf("the rules are %v", d.rules)
	}
}

// TestConcurrentLargeWrites: each write counts for the decision after it, and nothing is left of any, also if
// several writers have the same object.
func TestConcurrentLargeWrites(t *testing.T) {
	f, ctx := newFixture(t), within(t)
	f.create("clusterroles", clusterRole("lister", rule("list", "", "pods")))
	f.start()
	x := f.index()
	h := x.NewHistory()
	v, err := openView(ctx, h, "nobody", 0)
	must(t, err)
	defer v.Close()
	running, cancel := context.WithCancel(ctx)
	var following, writing sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { x.Run(running) })
	following.Go(func() { h.Run(running) })
	mayList(t, x, "nobody", "shared")
	x.prepared.follow(indexReader) // also if Run has not come to that
	namespaces := []string{"shared", "shared", "own1", "own2"}
	for _, namespace := range namespaces[1:] {
		f.create("rolebindings", largeBinding(namespace, "lister", "first"))
	}
	var last atomic.Int64
	for i, namespace := range namespaces {
		writing.Go(func() {
			for n := range 10 {
				name := fmt.Sprint("user", i, n)
				revision, err := f.update("rolebindings", largeBinding(namespace, "lister", name))
				if err != nil {
					t.Error(err)
				}
				for before := last.Load(); before < int64(revision) && !last.CompareAndSwap(before, int64(revision)); before = last.Load() {
				}
				f.awaitCaches(ctx)
				before := fmt.Sprint("user", i, n-1)
				if namespace != "shared" && (!mayList(t, x, name, namespace) || mayList(t, x, before, namespace)) {
					t.Errorf("%s: the binding of %s does not count", namespace, name)
				}
			}
		})
	}
	writing.Wait()
	f.awaitCaches(ctx)
	must(t, h.Wait(ctx, storage.Revision(last.Load())))
	mayList(t, x, "nobody", "shared")
	expectKept(t, x.prepared, 0)
}
