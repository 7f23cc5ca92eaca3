package discovery

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/levelwire/levelwire/server/internal/aggregation"
)

// Clients go by the order of groups and versions: of a name that two groups have, kubectl takes
// the first, and the first version of a group is the one that it prefers. The order is
// kube-aggregator's: by the priorities of APIServices. Groups of the same priority go by their
// names in aggregated discovery, and by the names of their APIServices in the plain one.

// sort puts versions and groups in order.
func (d *documents) sort() {
	for _, g := range d.groups {
		slices.SortFunc(g.versions, func(a, b *groupVersion) int {
			return cmp.Or(cmp.Compare(b.priority().Version, a.priority().Version), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
		})
	}
	sortGroups(d.groups, func(g *group) string { return g.name })
	d.plain = slices.DeleteFunc(slices.Clone(d.groups), func(g *group) bool { return g.name == "" })
	sortGroups(d.plain, (*group).apiService)
}

// sortGroups sorts by priority, and groups of the same one by a name; the core group is first.
func sortGroups(groups []*group, name func(*group) string) {
	type key struct {
		core     bool
		priority int32
		name     string
	}
	keys := make(map[*group]key, len(groups))
	for _, g := range groups {
		keys[g] = key{g.name == "", g.priority(), name(g)}
	}
	slices.SortFunc(groups, func(a, b *group) int {
		x, y := keys[a], keys[b]
		if x.core != y.core {
			if x.core {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.priority, x.priority), strings.Compare(x.name, y.name))
	})
}

// priority is the highest that one of the versions asks for.
func (g *group) priority() int32 {
	var highest int32
	for _, v := range g.versions {
		highest = max(highest, v.priority().Group)
	}
	return highest
}

// apiService is the name of the first of the APIServices that give the group its priority.
func (g *group) apiService() string {
	priority, first := g.priority(), ""
	for _, v := range g.versions {
		if name := v.Version + "." + v.Group; v.priority().Group == priority && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// priority is that of the version's APIService.
func (v *groupVersion) priority() aggregation.Priority {
	if v.remote != nil {
		return v.remote.Priority
	}
	if known, ok := aggregation.BuiltinPriority(v.GroupVersion); ok {
		return known
	}
	if v.isCustom() {
		return aggregation.CustomPriority
	}
	return aggregation.UnknownPriority
}
