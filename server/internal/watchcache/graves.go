package watchcache

import (
	"cmp"
	"slices"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// graves are the deletions that the log no longer holds, in the order of their
// revisions: what the state cannot tell those who come back. The cache's lock
// guards them.
type graves struct {
	list    []grave
	bytes   int64
	reduced int // so many in front are residues, or were when it was looked
	// since: every deletion after this revision is here or in the log.
	since storage.Revision
}

// grave is a deletion and when it left the log.
type grave struct {
	revision, through storage.Revision // as those of its entry
	last              *Object          // the last state; when room is scarce, its residue
	buried            time.Time
}

// graveSize is what a grave holds beside the object's JSON, with the object's
// own bookkeeping, an estimate.
const graveSize = 512

func (g *grave) size() int64 { return graveSize + int64(len(g.last.JSON)) }

// entry makes the deletion's entry anew. What its readers make of it goes with
// them, and is not counted.
func (g *grave) entry() *entry {
	e := &entry{revision: g.revision, through: g.through, previous: g.last}
	e.evicted.Store(true)
	return e
}

// bury keeps a deletion that the log has dropped.
func (g *graves) bury(e *entry, now time.Time) {
	buried := grave{e.revision, e.through, e.previous, now}
	g.list = append(g.list, buried)
	g.bytes += buried.size()
}

// trim reduces the oldest to their residues, and forgets the oldest, until the
// limits are kept.
func (g *graves) trim(opts *Options, residue func(*Object) *Object, now time.Time) {
	for ; g.bytes > opts.TombstoneBytes && g.reduced < len(g.list); g.reduced++ {
		oldest := &g.list[g.reduced]
		g.bytes -= oldest.size()
		oldest.last = residue(oldest.last)
		g.bytes += oldest.size()
	}
	drop := 0
	for i := range g.list {
		oldest := &g.list[i]
		if len(g.list)-drop <= opts.Tombstones && g.bytes <= opts.TombstoneBytes && now.Sub(oldest.buried) <= opts.TombstoneAge {
			break
		}
		g.bytes -= oldest.size()
		g.since = max(g.since, oldest.revision)
		drop++
	}
	clear(g.list[:drop])
	g.list, g.reduced = g.list[drop:], max(g.reduced-drop, 0)
}

// forget drops all, because nothing before revision is known any more.
func (g *graves) forget(revision storage.Revision) { *g = graves{since: revision} }

// recall puts deletions, of which none is missing after since, in front.
func (g *graves) recall(list []grave, since storage.Revision) {
	for i := range list {
		g.bytes += list[i].size()
	}
	g.list = append(list[:len(list):len(list)], g.list...)
	g.reduced, g.since = 0, since
}

// after returns the deletions after a revision. They change when the graves do.
func (g *graves) after(revision storage.Revision) []grave {
	first, _ := slices.BinarySearchFunc(g.list, revision+1, func(d grave, r storage.Revision) int { return cmp.Compare(d.revision, r) })
	return g.list[first:]
}

// residue returns what is worth keeping of the last state of an object; all of
// it, if it cannot be told.
func (c *Cache) residue(o *Object) *Object {
	if o.residue {
		return o
	}
	json, err := c.res.Residue(o.JSON)
	if err != nil {
		return o
	}
	attributes, err := c.res.Attributes(json)
	if err != nil {
		return o
	}
	out, err := NewObject(o.Key, o.Revision, attributes, json)
	if err != nil {
		return o
	}
	out.residue, out.created, out.steady, out.written = true, o.created, o.steady, o.written
	return out
}
