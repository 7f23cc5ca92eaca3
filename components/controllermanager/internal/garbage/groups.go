package garbage

import (
	"errors"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
)

// anyGroup stands for a group that is not known, as in discovery.FailedGroups.
const anyGroup = "*"

// groups are those whose kinds the collector may lack. A group version that was known and cannot be asked afterwards is watched on, and
// misses nothing, until something of its group is defined. What is defined in other groups does not matter: where definitions change
// often, a group that is away for good would otherwise keep each owner for a minute.
type groups struct {
	// changed is when a definition of a group last changed, until the whole group could be asked after that. A change under anyGroup may be
	// one of each.
	changed map[string]time.Time
	known   map[schema.GroupVersion]bool
	// failed are why group versions could not be asked in the last discovery, and from is since when those were not that
	// are not known.
	failed  map[schema.GroupVersion]error
	from    map[schema.GroupVersion]time.Time
	unnamed error // why the server does not say which groups it has
}

func newGroups() groups {
	return groups{changed: map[string]time.Time{}, known: map[schema.GroupVersion]bool{}, from: map[schema.GroupVersion]time.Time{}}
}

// groupOf returns the group of a definition: CustomResourceDefinitions and APIServices have it in their names, after the
// resource or the version.
func groupOf(definition string) string {
	_, group, ok := strings.Cut(definition, ".")
	if !ok {
		return anyGroup
	}
	return group
}

// end notes a discovery. Those that fail and are not known yet do so from first on.
func (g *groups) end(begun, first time.Time, served []discovery.Resource, failed map[schema.GroupVersion]error) {
	g.failed = failed
	if g.unnamed = failed[schema.GroupVersion{Group: anyGroup, Version: "*"}]; g.unnamed != nil {
		return // what was known still is
	}
	has := map[schema.GroupVersion]bool{}
	for _, r := range served {
		gv := r.Mapping.Kind.GroupVersion()
		if has[gv] = true; failed[gv] == nil {
			g.known[gv] = true
		}
	}
	maps.DeleteFunc(g.known, func(gv schema.GroupVersion, _ bool) bool { return !has[gv] && failed[gv] == nil })
	failing := map[string]bool{}
	for gv := range failed {
		failing[gv.Group], failing[anyGroup] = true, true
		if !g.known[gv] && g.from[gv].IsZero() {
			g.from[gv] = first
		}
	}
	maps.DeleteFunc(g.from, func(gv schema.GroupVersion, _ time.Time) bool { return g.known[gv] || failed[gv] == nil })
	maps.DeleteFunc(g.changed, func(group string, at time.Time) bool { return !failing[group] && counts(begun, at) })
}

// missing returns since when an owner may wait for the last of the kinds that may be missing, and why they may.
func (g *groups) missing() (from time.Time, reason error) {
	for gv, err := range g.failed {
		lacks := false
		for _, at := range []time.Time{g.from[gv], g.changed[gv.Group], g.changed[anyGroup]} {
			if lacks = lacks || !at.IsZero(); at.After(from) {
				from = at
			}
		}
		if lacks {
			reason = errors.Join(reason, err)
		}
	}
	return from, reason
}
