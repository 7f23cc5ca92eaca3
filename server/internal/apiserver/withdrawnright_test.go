package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// userTokens are the tokens of users that have no rights of their own: each is the
// user's name.
func userTokens(names ...string) *auth.StaticTokens {
	users := map[string]auth.User{testToken: {Name: "root", Groups: []string{auth.Masters}}}
	for _, name := range names {
		users[name] = auth.User{Name: name}
	}
	return auth.NewStaticTokens(users)
}

// asUser is the header of a request with a user's token.
func asUser(name string) string { return "Authorization: Bearer " + name }

// rbacCluster is a cluster with RBAC and the role "watcher", which allows to list and
// watch pods. The test's own token is an administrator's.
func rbacCluster(t testing.TB, users []string, change ...func(*setup)) *cluster {
	t.Helper()
	c := newCluster(t, append([]func(*setup){func(s *setup) {
		s.rbac, s.config.Tokens = true, userTokens(users...)
	}}, change...)...)
	c.grantRole("watcher", []string{"list", "watch"}, "", "pods")
	return c
}

func (c *cluster) rbacKind(plural string) registry.Registry {
	c.t.Helper()
	r, ok := c.server.config.Registry.Lookup(rbacv1.GroupName, "v1", plural)
	if !ok {
		c.t.Fatalf("%s are not served", plural)
	}
	return r
}

func (c *cluster) grantRole(name string, verbs []string, group, resources string) {
	c.t.Helper()
	c.createRBAC("clusterroles", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resources}}}})
}

func (c *cluster) createRBAC(plural string, obj resource.Object) {
	c.t.Helper()
	_, err := c.rbacKind(plural).Create(context.Background(), obj.GetNamespace(), obj, registry.WriteOptions{})
	must(c.t, err)
}

// bind gives a user a role: in a namespace, or everywhere if that is "".
func (c *cluster) bind(namespace, role, user string) {
	c.t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: role + "-" + user}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	if namespace == "" {
		c.createRBAC("clusterrolebindings", &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	c.createRBAC("rolebindings", &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

// unbind takes back what bind gave.
func (c *cluster) unbind(namespace, role, user string) {
	c.t.Helper()
	plural := "rolebindings"
	if namespace == "" {
		plural = "clusterrolebindings"
	}
	_, err := c.rbacKind(plural).Delete(context.Background(), namespace, role+"-"+user, nil)
	must(c.t, err)
}

// wantWithdrawn reads the error that ends a watch of pods in a namespace, and its end.
func (f *frames) wantWithdrawn(user, namespace string) {
	f.t.Helper()
	wantWithdrawn(f.t, f.next(), user, namespace)
	f.wantEnd()
}

func wantWithdrawn(t testing.TB, e frame, user, namespace string) {
	t.Helper()
	var status metav1.Status
	must(t, json.Unmarshal(e.Object, &status))
	want := fmt.Sprintf("pods is forbidden: User %q cannot watch resource \"pods\" in API group \"\" in the namespace %q: the right was withdrawn", user, namespace)
	if e.Type != "ERROR" || status.Kind != "Status" || status.Code != 403 || status.Reason != metav1.StatusReasonForbidden || status.Message != want ||
		!slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool { return cause.Type == "RightWithdrawn" }) {
		t.Fatalf("the watch got %s %s, want the 403 %q", e.Type, e.Object, want)
	}
}

// TestWithdrawnRightEndsWatches of exactly the user and the namespace that it was needed
// for, over every protocol. Granted again, the watch resumes where it was.
func TestWithdrawnRightEndsWatches(t *testing.T) {
	for _, server := range []HTTP2Server{HTTP2Levelwire, HTTP2NetHTTP} {
		t.Run(string(server), func(t *testing.T) {
			c := rbacCluster(t, []string{"jane", "joe", "both"}, func(s *setup) { s.config.HTTP2Server = server })
			for _, user := range []string{"jane", "joe", "both"} {
				c.bind("a", "watcher", user)
			}
			c.bind("b", "watcher", "jane")
			c.bind("", "watcher", "both")
			c.overBoth(t, func(t *testing.T) {
				inA := "/api/v1/namespaces/a/pods?watch=1&resourceVersion="
				rev := c.put(testPod("a", "before", nil, ""))
				withdrawn := c.watch(inA+fmt.Sprint(rev), asUser("jane"))
				others := []*frames{c.watch(inA+fmt.Sprint(rev), asUser("joe")), c.watch(inA+fmt.Sprint(rev), asUser("both")), c.watch(inA + fmt.Sprint(rev)),
					c.watch(fmt.Sprint("/api/v1/namespaces/b/pods?watch=1&resourceVersion=", rev), asUser("jane"))}
				event := fmt.Sprint("MODIFIED before@", c.put(testPod("a", "before", nil, "")))
				withdrawn.want(event)

				c.unbind("a", "watcher", "jane")
				c.unbind("a", "watcher", "both")
				withdrawn.wantWithdrawn("jane", "a")
				rev = c.put(testPod("a", "after", nil, ""))
				inB := c.put(testPod("b", "after", nil, ""))
				if got := c.get(inA+fmt.Sprint(rev), asUser("jane")); got.code != 403 {
					t.Errorf("the watch was opened again: %d %s", got.code, got.body)
				}
				c.bind("a", "watcher", "jane")
				c.bind("a", "watcher", "both")
				c.watch(inA+fmt.Sprint(rev-1), asUser("jane")).want(fmt.Sprintf("ADDED after@%d", rev))
				for i, other := range others {
					if i == 3 {
						other.want(fmt.Sprint("ADDED after@", inB))
						continue
					}
					other.want(event, fmt.Sprint("ADDED after@", rev))
				}
				c.remove("a", "after")
				c.remove("a", "before")
				c.remove("b", "after")
			})
		})
	}
}

func TestWithdrawnRightEndsWebSockets(t *testing.T) {
	c := rbacCluster(t, []string{"jane"})
	c.bind("a", "watcher", "jane")
	conn := c.mustDial("/api/v1/namespaces/a/pods?watch=1&resourceVersion=1", "", webSocketToken+"amFuZQ", binaryProtocol)
	c.unbind("a", "watcher", "jane")
	_, data, err := conn.ReadMessage()
	must(t, err)
	var e frame
	must(t, json.Unmarshal(data, &e))
	wantWithdrawn(t, e, "jane", "a")
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived) {
		t.Errorf("after the error: %v", err)
	}
}

// TestWithdrawnImpersonationEndsWatches: a watch needs the right to be the other user for
// as long as it is open, and the other user's rights.
func TestWithdrawnImpersonationEndsWatches(t *testing.T) {
	c := rbacCluster(t, []string{"jane", "joe"})
	c.grantRole("impersonator", []string{"impersonate"}, "", "users")
	c.bind("", "impersonator", "jane")
	c.bind("a", "watcher", "joe")
	const path = "/api/v1/namespaces/a/pods?watch=1&resourceVersion=1"
	own := c.watch(path, asUser("joe"))
	impersonated := c.watch(path, asUser("jane"), "Impersonate-User: joe")
	c.unbind("", "impersonator", "jane")
	var status metav1.Status
	must(t, json.Unmarshal(impersonated.next().Object, &status))
	if status.Code != 403 || !strings.HasPrefix(status.Message, `users "joe" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope`) {
		t.Errorf("the watch ended as %+v", status)
	}
	impersonated.wantEnd()
	c.bind("", "impersonator", "jane")
	impersonated = c.watch(path, asUser("jane"), "Impersonate-User: joe")
	c.unbind("a", "watcher", "joe")
	impersonated.wantWithdrawn("joe", "a")
	own.wantWithdrawn("joe", "a")
}

// TestWithdrawnConstrainedImpersonation: a watch of constrained impersonation needs the
// right to the action and the one to the user, or another way to be the user.
func TestWithdrawnConstrainedImpersonation(t *testing.T) {
	c := rbacCluster(t, []string{"jane", "joe"})
	c.bind("a", "watcher", "joe")
	c.grantRole("identity", []string{"impersonate:user-info"}, "authentication.k8s.io", "users")
	c.grantRole("action", []string{"impersonate-on:user-info:watch"}, "", "pods")
	c.grantRole("impersonator", []string{"impersonate"}, "", "users")
	const path = "/api/v1/namespaces/a/pods?watch=1&resourceVersion=1"
	wantEnd := func(f *frames, says string) {
		t.Helper()
		var status metav1.Status
		must(t, json.Unmarshal(f.next().Object, &status))
		if status.Code != 403 || !strings.Contains(status.Message, says) || !strings.Contains(status.Message, "the right was withdrawn") {
			t.Errorf("the watch ended as %+v", status)
		}
		f.wantEnd()
	}
	c.bind("", "identity", "jane")
	c.bind("a", "action", "jane")
	watch := c.watch(path, asUser("jane"), "Impersonate-User: joe")
	c.unbind("a", "action", "jane")
	wantEnd(watch, `cannot impersonate-on:user-info:watch resource "pods" in API group "" in the namespace "a"`)
	c.bind("a", "action", "jane")
	watch = c.watch(path, asUser("jane"), "Impersonate-User: joe")
	c.bind("", "impersonator", "jane")
	c.unbind("", "identity", "jane") // the verb impersonate still allows it
	c.unbind("", "impersonator", "jane")
	wantEnd(watch, `cannot impersonate:user-info resource "users" in API group "authentication.k8s.io"`)
}

// TestWithdrawnRightEndsInitialEvents: a streaming list whose client reads slowly gets
// no more of the state, and not the bookmark that would complete it.
func TestWithdrawnRightEndsInitialEvents(t *testing.T) {
	c := rbacCluster(t, []string{"jane"})
	c.bind("a", "watcher", "jane")
	const pods = 4000
	for i := range pods {
		pod := testPod("a", fmt.Sprint("pod", i), nil, "")
		pod.Annotations = map[string]string{"large": strings.Repeat("x", 8<<10)}
		c.put(pod)
	}
	c.cached(c.put(testPod("a", "last", nil, "")))
	c.overBoth(t, func(t *testing.T) {
		for _, form := range []string{"application/json", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			f := c.watch("/api/v1/namespaces/a/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", asUser("jane"), "Accept: "+form)
			f.next()
			c.unbind("a", "watcher", "jane")
			testwait.Stable(t, "the watch was ended", func() (any, bool) { seen := c.server.open.Groups(); return seen, seen == 0 })
			added := 1
			for e := f.next(); ; e = f.next() {
				if e.Type != "ADDED" {
					wantWithdrawn(t, e, "jane", "a")
					break
				}
				added++
			}
			f.wantEnd()
			if added >= pods {
				t.Errorf("%q: the whole state was sent", form)
			}
			c.bind("a", "watcher", "jane")
		}
	})
}

// TestRightWithdrawnDuringOpening: between the moment in which a watch is authorized and
// the one in which it is registered, no withdrawal is missed.
func TestRightWithdrawnDuringOpening(t *testing.T) {
	authorizer := &fickle{}
	c := newCluster(t, func(s *setup) { s.config.Authorizer = authorizer })
	const path = "/api/v1/namespaces/a/pods?watch=1&resourceVersion=1"
	for range 20 {
		authorizer.set(true, false)
		first := c.watch(path)
		authorizer.set(true, true)
		second := c.watch(path) // joins the first one's group, or comes when it has gone
		first.wantWithdrawn("tester", "a")
		second.wantWithdrawn("tester", "a")
		authorizer.set(true, true)
		c.watch(path).wantWithdrawn("tester", "a")
	}
	testwait.Stable(t, "ended watches are not registered", func() (any, bool) { seen := c.server.open.Groups(); return seen, seen == 0 })
}

// fickle is an Authorizer that withdraws the right to watch, and has reported it, before
// its decision to allow a request arrives.
type fickle struct {
	changes auth.Changes

	mu                sync.Mutex
	allowed, withdraw bool
}

func (f *fickle) set(allowed, withdraw bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allowed, f.withdraw = allowed, withdraw
}

func (f *fickle) Authorize(ctx context.Context, _ auth.Attributes) (auth.Decision, string, error) {
	isRequest := reporter.From(ctx) != nil // and not the server, which asks again whenever it likes
	f.mu.Lock()
	allowed, withdrawn := f.allowed, f.allowed && f.withdraw && isRequest
	if withdrawn {
		f.allowed = false
	}
	f.mu.Unlock()
	if withdrawn {
		f.changes.Notify()
	}
	if !allowed {
		return auth.NoOpinion, "", nil
	}
	return auth.Allow, "", nil
}

func (f *fickle) OnChange(changed func(user string)) (stop func()) {
	return f.changes.OnChange(changed)
}

// TestUndecidedWatchesGoOn: an authorizer that fails ends no watch, and is asked again.
func TestUndecidedWatchesGoOn(t *testing.T) {
	authorizer := &failing{asked: make(chan struct{}, 100)}
	c := newCluster(t, func(s *setup) { s.config.Authorizer = authorizer })
	f := c.watch("/api/v1/namespaces/a/pods?watch=1&resourceVersion=1")
	authorizer.fail(errors.New("the webhook does not answer"))
	for range 2 {
		<-authorizer.asked // without another change
	}
	f.want(fmt.Sprint("ADDED p@", c.put(testPod("a", "p", nil, ""))))
	authorizer.fail(errWithdrawn)
	f.wantWithdrawn("tester", "a")
}

var errWithdrawn = errors.New("withdrawn")

type failing struct {
	changes auth.Changes
	asked   chan struct{} // receives when a decision failed
	mu      sync.Mutex
	err     error
}

func (f *failing) fail(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.changes.Notify()
}

func (f *failing) Authorize(context.Context, auth.Attributes) (auth.Decision, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.err {
	case nil:
		return auth.Allow, "", nil
	case errWithdrawn:
		return auth.NoOpinion, "", nil
	}
	select {
	case f.asked <- struct{}{}:
	default:
	}
	return auth.NoOpinion, "", f.err
}

func (f *failing) OnChange(changed func(user string)) (stop func()) {
	return f.changes.OnChange(changed)
}
