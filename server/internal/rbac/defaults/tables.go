package defaults

import (
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/rbac"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// table has all default roles and bindings. Its objects are shared by the servers of the
// process and must not be modified.
type table struct {
	// parts are what aggregated roles select, without those that are aggregated.
	parts []resource.Object
	// aggregated have the rules of the parts, and withoutRules are the same roles
	// without them.
	aggregated, withoutRules []resource.Object
	others                   []resource.Object
	node                     []rbacv1.PolicyRule
}

// tables makes the table once, because a program of tests starts many servers.
var tables = sync.OnceValue(func() *table {
	t := &table{}
	roles := append(clusterRoles(), controllerRoles()...)
	for _, role := range roles {
		switch {
		case role.AggregationRule != nil:
			t.withoutRules = append(t.withoutRules, role.DeepCopy())
			t.aggregated = append(t.aggregated, role)
		case isPart(role):
			t.parts = append(t.parts, role)
		default:
			t.others = append(t.others, role)
		}
		if role.Name == "system:node" {
			t.node = role.Rules
		}
	}
	aggregate(roles)
	for _, binding := range append(clusterRoleBindings(), controllerBindings()...) {
		t.others = append(t.others, binding)
	}
	for _, role := range namespacedRoles() {
		t.others = append(t.others, role)
	}
	for _, binding := range roleBindings() {
		t.others = append(t.others, binding)
	}
	return t
})

func isPart(role *rbacv1.ClusterRole) bool {
	for label := range role.Labels {
		if strings.HasPrefix(label, aggregateTo) {
			return true
		}
	}
	return false
}

// aggregate gives the aggregated roles their rules: as often as there are roles, because
// one may be part of another.
func aggregate(roles []*rbacv1.ClusterRole) {
	sorted := slices.SortedFunc(slices.Values(roles), func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	for range roles {
		changed := false
		for _, role := range roles {
			if role.AggregationRule == nil {
				continue
			}
			rules := rbac.AggregatedRules(role, sorted)
			changed = changed || len(rules) != len(role.Rules)
			role.Rules = rules
		}
		if !changed {
			return
		}
	}
}

// NodeRules are the rules of system:node, which the node authorizer applies to kubelets:
// the role is bound to no user. They are shared and must not be modified.
func NodeRules() []rbacv1.PolicyRule { return tables().node }
