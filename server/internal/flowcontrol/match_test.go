package flowcontrol

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// request is one of an authenticated user for a resource: "group/resource/subresource", or
// a resource of the core group.
func request(user, verb, what, namespace string, groups ...string) *auth.Attributes {
	a := &auth.Attributes{User: auth.User{Name: user, Groups: append(groups, auth.Authenticated)}, Verb: verb, Namespace: namespace}
	if strings.HasPrefix(what, "/") {
		a.Path = what
		return a
	}
	parts := strings.Split(what, "/")
	if len(parts) == 1 {
		parts = []string{"", parts[0]}
	}
	a.Group, a.Resource, a.Path = parts[0], parts[1], "/some/path"
	if len(parts) == 3 {
		a.Subresource = parts[2]
	}
	return a
}

func account(namespace, name string) (user string, groups []string) {
	return auth.ServiceAccountName(namespace, name), []string{auth.ServiceAccounts, auth.ServiceAccounts + ":" + namespace}
}

// TestSchemasOfManyGroups: a schema may name thousands of groups, and a user be in all of them.
func TestSchemasOfManyGroups(t *testing.T) {
	const many = 10_000
	x, schemas := newSubjectIndex(), []flowcontrolv1.PolicyRulesWithSubjects{{}, {}}
	user := &auth.User{Name: "alice"}
	for i := range many {
		name := fmt.Sprint("g", i)
		user.Groups = append(user.Groups, name)
		schemas[i%2].Subjects = append(schemas[i%2].Subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}})
	}
	for i := range schemas {
		x.add(int32(i), []rule{compileRule(&schemas[i])})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := x.of(user)
	runtime.ReadMemStats(&after)
	if first, second, end := c.next(), c.next(), c.next(); first != 0 || second != 1 || end != -1 {
		t.Errorf("schemas %d, %d, %d", first, second, end)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 100*many {
		t.Errorf("%d bytes for %d groups", bytes, many)
	}
}

// TestDefaultClassification is the table of the documentation of Kubernetes: "Defaults" of
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/.
func TestDefaultClassification(t *testing.T) {
	controller, controllerGroups := account("kube-system", "replicaset-controller")
	robot, robotGroups := account("team-a", "robot")
	anonymous := &auth.Attributes{User: auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}, Verb: "get", Path: "/version"}
	cases := []struct {
		request            *auth.Attributes
		schema, level, key string
	}{
		{request("admin", "list", "pods", "", auth.Masters), "exempt", "exempt", ""},
		{request("admin", "get", "/metrics", "", auth.Masters), "exempt", "exempt", ""},
		{request("alice", "get", "/readyz", ""), "probes", "exempt", ""},
		{request("alice", "get", "/readyz/etcd", ""), "probes", "exempt", ""},
		{request("alice", "get", "/readyzz", ""), "global-default", "global-default", "alice"},
		{request("alice", "post", "/readyz", ""), "global-default", "global-default", "alice"},
		{request("system:kube-scheduler", "update", "coordination.k8s.io/leases", "kube-system"), "system-leader-election", "leader-election", "system:kube-scheduler"},
		{request("system:kube-scheduler", "delete", "coordination.k8s.io/leases", "kube-system"), "kube-scheduler", "workload-high", "kube-system"},
		{request(controller, "get", "coordination.k8s.io/leases", "kube-system", controllerGroups...), "system-leader-election", "leader-election", controller},
		{request("system:node:n1", "update", "coordination.k8s.io/leases", "kube-node-lease", "system:nodes"), "system-node-high", "node-high", "system:node:n1"},
		{request("system:node:n1", "patch", "/nodes/status", "", "system:nodes"), "system-nodes", "system", "system:node:n1"}, // a path
		{request("system:node:n1", "patch", "core-is-empty/nodes/status", "", "system:nodes"), "system-nodes", "system", "system:node:n1"},
		{request("system:node:n1", "get", "nodes", "", "system:nodes"), "system-node-high", "node-high", "system:node:n1"},
		{request("system:node:n1", "list", "pods", "", "system:nodes"), "system-nodes", "system", "system:node:n1"},
		{request("system:kube-controller-manager", "list", "apps/deployments", "team-a"), "kube-controller-manager", "workload-high", "team-a"},
		{request(controller, "create", "pods", "team-a", controllerGroups...), "kube-system-service-accounts", "workload-high", "team-a"},
		{request(robot, "create", "pods", "team-a", robotGroups...), "service-accounts", "workload-low", robot},
		{request("alice", "create", "pods", "team-a"), "global-default", "global-default", "alice"},
		{anonymous, "global-default", "global-default", auth.Anonymous},
	}
	nodeStatus := request("system:node:n1", "patch", "nodes", "", "system:nodes")
	nodeStatus.Subresource = "status"
	cases = append(cases, struct {
		request            *auth.Attributes
		schema, level, key string
	}{nodeStatus, "system-node-high", "node-high", "system:node:n1"})
	f := newFixture(t, 600)
	for _, stored := range []bool{false, true} {
		if stored {
			f.start()
		}
		for _, c := range cases {
			m := f.Classify(c.request)
			if m.Schema != c.schema || m.Level != c.level || m.Flow.Key != c.key {
				t.Errorf("stored %v: %+v is %s, %s, %q, want %s, %s, %q", stored, *c.request, m.Schema, m.Level, m.Flow.Key, c.schema, c.level, c.key)
			}
			if uid := m.SchemaUID[0]; stored != (uid != "") || stored != (m.LevelUID[0] != "") {
				t.Errorf("stored %v, but the UIDs are %q and %q", stored, uid, m.LevelUID[0])
			}
		}
	}
}

// TestRules: each part of a rule, alone.
func TestRules(t *testing.T) {
	robot, robotGroups := account("a", "robot")
	resources := func(change func(*flowcontrolv1.ResourcePolicyRule)) flowcontrolv1.PolicyRulesWithSubjects {
		p := onEverything(userSubject("*"))
		change(&p.ResourceRules[0])
		return p
	}
	paths := func(paths ...string) flowcontrolv1.PolicyRulesWithSubjects {
		p := onEverything(groupSubject("*"))
		p.NonResourceRules[0].NonResourceURLs = paths
		return p
	}
	for _, c := range []struct {
		name    string
		policy  flowcontrolv1.PolicyRulesWithSubjects
		request *auth.Attributes
		want    bool
	}{
		{"the user", onEverything(userSubject("u")), request("u", "get", "pods", "a"), true},
		{"another user", onEverything(userSubject("u")), request("v", "get", "pods", "a"), false},
		{"all users", onEverything(userSubject("*")), request("v", "get", "pods", "a"), true},
		{"the group", onEverything(groupSubject("g")), request("u", "get", "pods", "a", "f", "g"), true},
		{"another group", onEverything(groupSubject("g")), request("g", "get", "pods", "a", "f"), false},
		{"all groups", onEverything(groupSubject("*")), request("u", "get", "pods", "a"), true},
		{"the second subject", onEverything(groupSubject("g"), userSubject("u")), request("u", "get", "pods", "a"), true},
		{"the account", onEverything(accountSubject("a", "robot")), request(robot, "get", "pods", "a", robotGroups...), true},
		{"another account", onEverything(accountSubject("a", "rob")), request(robot, "get", "pods", "a", robotGroups...), false},
		{"all accounts", onEverything(accountSubject("a", "*")), request(robot, "get", "pods", "a", robotGroups...), true},
		{"accounts of another namespace", onEverything(accountSubject("aa", "*")), request(robot, "get", "pods", "a", robotGroups...), false},
		{"a subject of no kind", onEverything(flowcontrolv1.Subject{Kind: "Sheep"}), request("u", "get", "pods", "a"), false},
		{"a subject without a name", onEverything(flowcontrolv1.Subject{Kind: "User"}), request("u", "get", "pods", "a"), false},
		{"no subject", onEverything(), request("u", "get", "pods", "a"), false},
		{"the verb", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Verbs = []string{"get", "list"} }), request("u", "list", "pods", "a"), true},
		{"another verb", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Verbs = []string{"get", "list"} }), request("u", "watch", "pods", "a"), false},
		{"the group of the API", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.APIGroups = []string{"apps"} }), request("u", "get", "apps/deployments", "a"), true},
		{"another", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.APIGroups = []string{"apps"} }), request("u", "get", "pods", "a"), false},
		{"the resource", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Resources = []string{"pods"} }), request("u", "get", "pods", "a"), true},
		{"its subresource", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Resources = []string{"deployments"} }), request("u", "get", "apps/deployments/scale", "a"), false},
		{"the subresource", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Resources = []string{"x", "deployments/scale"} }), request("u", "get", "apps/deployments/scale", "a"), true},
		{"a part of its name", resources(func(r *flowcontrolv1.ResourcePolicyRule) {
			r.Resources = []string{"deployments/sca", "deployments/", "deploymentsscale"}
		}), request("u", "get", "apps/deployments/scale", "a"), false},
		{"all subresources", onEverything(userSubject("u")), request("u", "get", "apps/deployments/scale", "a"), true},
		{"the namespace", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Namespaces = []string{"a"} }), request("u", "get", "pods", "a"), true},
		{"another namespace", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Namespaces = []string{"a"} }), request("u", "get", "pods", "b"), false},
		{"no namespace, but all", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.ClusterScope = false }), request("u", "get", "nodes", ""), false},
		{"only the cluster", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Namespaces = nil }), request("u", "get", "nodes", ""), true},
		{"only the cluster, in a namespace", resources(func(r *flowcontrolv1.ResourcePolicyRule) { r.Namespaces = nil }), request("u", "get", "pods", "a"), false},
		{"the path", paths("/a", "/b"), request("u", "get", "/b", ""), true},
		{"below the path", paths("/b"), request("u", "get", "/b/c", ""), true},
		{"a longer name", paths("/b"), request("u", "get", "/bb", ""), false},
		{"below a pattern", paths("/b/*"), request("u", "get", "/b/c", ""), true},
		{"beside a pattern", paths("/b/*"), request("u", "get", "/c/b/", ""), false},
		{"all paths", paths("*"), request("u", "get", "/c", ""), true},
		{"paths are not resources", paths("/b"), request("u", "get", "pods", "a"), true}, // by the resource rule
	} {
		r := compileRule(&c.policy)
		if got := r.matches(c.request); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPrecedence: the lowest number first, then the name.
func TestPrecedence(t *testing.T) {
	f := newFixture(t, 600)
	o := defaultObjects()
	for _, s := range []*flowcontrolv1.FlowSchema{
		flowSchema("b", "system", 50, onEverything(userSubject("alice"))),
		flowSchema("a", "system", 50, onEverything(userSubject("alice"))),
		flowSchema("z", "system", 49, onEverything(userSubject("bob"))),
		flowSchema("dangling", "nowhere", 3, onEverything(userSubject("*"))),
	} {
		o.schemas[s.Name] = s
	}
	f.configure(o)
	for user, want := range map[string]string{"alice": "a", "bob": "z", "carol": "global-default"} {
		if got := f.Classify(request(user, "get", "pods", "default")).Schema; got != want {
			t.Errorf("%s is in %s, want %s", user, got, want)
		}
	}
	// Without any other schema, and with specs of the mandatory ones that cannot be.
	broken := objects{map[string]*flowcontrolv1.FlowSchema{"catch-all": flowSchema("catch-all", "nowhere", 1, flowcontrolv1.PolicyRulesWithSubjects{})}, nil}
	broken.levels = map[string]*flowcontrolv1.PriorityLevelConfiguration{
		"catch-all": {ObjectMeta: metav1.ObjectMeta{Name: "catch-all"}}, "empty": {ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: "Limited"}},
	}
	f.configure(broken)
	if m := f.Classify(request("alice", "get", "pods", "default")); m.Schema != "catch-all" || m.Level != "catch-all" || m.Flow.Level == nil {
		t.Errorf("%+v", m)
	}
	if m := f.Classify(&auth.Attributes{Verb: "get", Path: "/x"}); m.Level != "catch-all" { // of no user
		t.Errorf("%+v", m)
	}
}

// TestManyGroups: the first schema wins, however many groups of the user have one.
func TestManyGroups(t *testing.T) {
	f := newFixture(t, 600)
	o := defaultObjects()
	var groups []string
	for i := range 3 * maxLists {
		group := fmt.Sprint("g", i)
		groups = append(groups, group)
		policy := onEverything(groupSubject(group))
		policy.ResourceRules[0].Resources = []string{fmt.Sprint("resource-", i)}
		s := flowSchema(group, "system", int32(1000-i), policy)
		o.schemas[s.Name] = s
	}
	f.configure(o)
	for i, group := range groups {
		if got := f.Classify(request("alice", "get", fmt.Sprint("resource-", i), "a", groups...)).Schema; got != group {
			t.Errorf("resource %d is in %s", i, got)
		}
	}
	if got := f.Classify(request("alice", "get", "pods", "a", groups...)).Schema; got != "global-default" {
		t.Errorf("another resource is in %s", got)
	}
}

// BenchmarkClassify classifies by the default schemas, and by 50 more that come first.
func BenchmarkClassify(b *testing.B) {
	f := newFixture(b, 600)
	robot, robotGroups := account("team-a", "robot")
	requests := []*auth.Attributes{
		request("alice", "list", "pods", "team-a", slices.Repeat([]string{"some-group"}, 5)...),
		request(robot, "update", "apps/deployments/status", "team-a", robotGroups...),
		request("system:node:n1", "list", "pods", "", "system:nodes"),
	}
	for _, more := range []int{0, 50} {
		o := defaultObjects()
		for i := range more {
			s := flowSchema(fmt.Sprint("s", i), "system", int32(100+i), onEverything(userSubject(fmt.Sprint("user-", i)), accountSubject("team-b", fmt.Sprint("robot-", i))))
			o.schemas[s.Name] = s
		}
		f.configure(o)
		b.Run(fmt.Sprint("more=", more), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Classify(requests[i%len(requests)])
			}
		})
	}
}
