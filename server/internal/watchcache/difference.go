package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// difference is one key in which a cache is not as its source is.
type difference struct {
	key    string
	object *Object          // what the source holds; nil if the key is not there
	seen   storage.Revision // of the object that the cache held; 0 if none
}

// differences compares the state with what the source holds.
func (c *Cache) differences(source btree.Tree[*Object]) []difference {
	held := c.state.Load().tree
	var found []difference
	for key, o := range source.Range("", "") {
		var seen storage.Revision
		if had, ok := held.Get(key); ok {
			seen = had.Revision
		}
		if seen != o.Revision {
			found = append(found, difference{key, o, seen})
		}
	}
	for key, had := range held.Range("", "") {
		if _, ok := source.Get(key); !ok {
			found = append(found, difference{key, nil, had.Revision})
		}
	}
	return found
}

// stale reports whether the cache has moved on since the difference was
// found, so that it means nothing any more.
func (c *Cache) stale(d difference) bool {
	var revision storage.Revision
	if o, ok := c.state.Load().tree.Get(d.key); ok {
		revision = o.Revision
	}
	return revision != d.seen
}

// schedule merges differences into changes, which lie in (after, through] in
// ascending order, so that the result ascends strictly. A difference is given
// the revision of its object if that lies in the range and is free, and else the
// latest one that is free: a deletion, whose revision nobody knows, may be
// announced later than it happened but never earlier, so that a client that
// resumes elsewhere from the announced revision has missed nothing. For a gap
// in the stream of a store that changes one key in a revision there is always
// room. What does not fit is returned as the rest.
func schedule(changes []Change, differences []difference, after, through storage.Revision) (merged []Change, rest []difference) {
	if len(differences) == 0 {
		return changes, nil
	}
	used := make(map[storage.Revision]bool, len(changes)+len(differences))
	for i := range changes {
		used[changes[i].Revision] = true
	}
	merged = slices.Clone(changes)
	var homeless []difference
	for _, d := range differences {
		if o := d.object; o != nil && o.Revision > after && o.Revision <= through && !used[o.Revision] {
			used[o.Revision] = true
			merged = append(merged, Change{Key: d.key, Object: o, Revision: o.Revision})
		} else {
			homeless = append(homeless, d)
		}
	}
	free := through
	for i, d := range homeless {
		for free > after && used[free] {
			free--
		}
		if free <= after {
			rest = homeless[i:]
			break
		}
		merged = append(merged, Change{Key: d.key, Object: d.object, Revision: free})
		free--
	}
	slices.SortStableFunc(merged, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return merged, rest
}
