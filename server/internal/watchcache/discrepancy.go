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
	anew   bool             // that object had another UID
}

// madeAnew reports whether the source's object is not the one that the cache held: that was
// deleted in between, and a client with it needs the deletion. The new one may never have been
// selected by what selected the old one.
func (d *Discrepancy) madeAnew() bool {
	return d.Object != nil && d.Held != 0 && (d.anew || d.Object.CreatedRevision > d.Held)
}

// discrepancies compares the state with the source's objects.
func (c *Cache) discrepancies(source btree.Tree[*Object]) []Discrepancy {
	held := c.state.Load().tree
	var found []Discrepancy
	for key, o := range source.Range("", "") {
		d := Discrepancy{Key: key, Object: o}
		if had, ok := held.Get(key); ok {
			d.Held, d.anew = had.Revision, had.Attributes.UID != o.Attributes.UID
		}
		if d.Held != o.Revision {
			found = append(found, d)
		}
	}
	for key, had := range held.Range("", "") {
		if _, ok := source.Get(key); !ok {
			found = append(found, Discrepancy{Key: key, Held: had.Revision})
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
// through] in ascending order, so that the result ascends. A correction comes at the
// revision of the source's object, which other changes may share. If the cache has
// passed that, it comes at the first revision, and so do deletions, whose revisions are
// unknown: a client that breaks off and resumes on another server gets a deletion
// that came too early again, and would never get one that came too late. An object
// that was made anew is deleted first. What comes after through, or has no revision, is
// returned as rest.
func schedule(changes []Change, discrepancies []Discrepancy, after, through storage.Revision) (merged []Change, rest []Discrepancy) {
	if len(discrepancies) == 0 {
		return changes, nil
	}
	merged = slices.Clone(changes)
	for _, d := range discrepancies {
		at := after + 1
		if d.Object != nil {
			at = max(at, d.Object.Revision)
		}
		if at > through {
			rest = append(rest, d)
			continue
		}
		if d.Object == nil || d.madeAnew() {
			merged = append(merged, Change{Key: d.Key, Revision: after + 1})
		}
		if d.Object != nil {
			merged = append(merged, Change{Key: d.Key, Object: d.Object, Revision: at})
		}
	}
	slices.SortStableFunc(merged, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return merged, rest
}
