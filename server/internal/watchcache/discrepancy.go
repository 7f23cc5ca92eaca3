package watchcache

import (
	"cmp"
	"slices"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/storage"
)

// Discrepancy is one key at which a cache differs from its source.
type Discrepancy struct {
	Key    string
	Object *Object          // in the source; nil if the key does not exist there
	Held   storage.Revision // of the object that the cache held; 0 if none
}

// discrepancies compares the state with the source's objects.
func (c *Cache) discrepancies(source btree.Tree[*Object]) []Discrepancy {
	held := c.state.Load().tree
	var found []Discrepancy
	for key, o := range source.Range("", "") {
		var revision storage.Revision
		if had, ok := held.Get(key); ok {
			revision = had.Revision
		}
		if revision != o.Revision {
			found = append(found, Discrepancy{key, o, revision})
		}
	}
	for key, had := range held.Range("", "") {
		if _, ok := source.Get(key); !ok {
			found = append(found, Discrepancy{key, nil, had.Revision})
		}
	}
	return found
}

// outdated reports whether the key has changed in the cache since the discrepancy
// was found, which makes the discrepancy meaningless.
func (c *Cache) outdated(d Discrepancy) bool {
	var revision storage.Revision
	if o, ok := c.state.Load().tree.Get(d.Key); ok {
		revision = o.Revision
	}
	return revision != d.Held
}

// Repair adds corrections of the discrepancies to the changes of a batch that ends
// at through, as far as there are revisions for them, and returns the discrepancies
// that are left over. It applies nothing.
func (c *Cache) Repair(changes []Change, discrepancies []Discrepancy, through storage.Revision) ([]Change, []Discrepancy) {
	changed := make(map[string]bool, len(changes))
	for i := range changes {
		changed[changes[i].Key] = true
	}
	discrepancies = slices.DeleteFunc(discrepancies, func(d Discrepancy) bool { return changed[d.Key] || c.outdated(d) })
	merged, rest := schedule(changes, discrepancies, c.Reached(), through)
	c.counters.repaired.Add(int64(len(discrepancies) - len(rest)))
	return merged, rest
}

// schedule merges corrections of discrepancies into changes, which lie in (after,
// through] in ascending order, so that the result strictly ascends. A correction
// gets the revision of the source's object if that lies in the range and is free,
// and otherwise the latest free one: a client that resumes on another server from the
// announced revision has missed nothing of it. A deletion, whose revision is unknown, is so
// announced later than it happened, or, as one of several, perhaps a little earlier: then
// another server repeats it. For a
// gap in the stream of a store that changes one key in a revision there is always
// room. What does not fit is returned as rest.
func schedule(changes []Change, discrepancies []Discrepancy, after, through storage.Revision) (merged []Change, rest []Discrepancy) {
	if len(discrepancies) == 0 {
		return changes, nil
	}
	used := make(map[storage.Revision]bool, len(changes)+len(discrepancies))
	for i := range changes {
		used[changes[i].Revision] = true
	}
	merged = slices.Clone(changes)
	var unplaced []Discrepancy
	for _, d := range discrepancies {
		if o := d.Object; o != nil && o.Revision > after && o.Revision <= through && !used[o.Revision] {
			used[o.Revision] = true
			merged = append(merged, Change{Key: d.Key, Object: o, Revision: o.Revision})
		} else {
			unplaced = append(unplaced, d)
		}
	}
	free := through
	for i, d := range unplaced {
		for free > after && used[free] {
			free--
		}
		if free <= after {
			rest = unplaced[i:]
			break
		}
		merged = append(merged, Change{Key: d.Key, Object: d.Object, Revision: free})
		free--
	}
	slices.SortStableFunc(merged, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return merged, rest
}
