package state

import (
	"math"

	"github.com/levelwire/levelwire/storage"
)

// MembershipChanges reports whether an object can enter or leave the selection
// while it exists: by its labels or fields, which change, and not by its name.
func (s *Selection) MembershipChanges() bool { return s != nil && len(s.fields)+len(s.labels) > 0 }

// MayHaveMatched reports whether an object that does not match now, but existed
// at a revision, may have matched then. A bound pod has never been on another
// node, so a kubelet's watch does not see the changed pods of all other nodes.
func (s *Selection) MayHaveMatched(o *Object, at storage.Revision) bool {
	if s.selectorsStableSince(o) <= at || !s.matchesIdentity(&o.Attributes) {
		return false
	}
	for i := range s.fields {
		if c := &s.fields[i]; c.everFailed && !c.holds(FieldOf(s.stored, o, c.index)) {
			return false
		}
	}
	return true
}

// selectorsStableSince returns a revision since when the labels and fields that
// the selection compares are as they are in o. Fields that became selectable later
// than o are not compared when objects enter the cache. Tombstone metadata lacks
// fields that became selectable after it was made, so for it the revision is
// unknown; only custom resources have such fields.
func (s *Selection) selectorsStableSince(o *Object) storage.Revision {
	for i := range s.fields {
		switch index := s.fields[i].index; {
		case o.tombstone && s.stored.Mixed && FieldOf(s.stored, o, index) == "":
			return math.MaxInt64
		case index >= len(o.Attributes.Fields):
			return o.Written()
		}
	}
	if o.SelectorsStableSince == 0 {
		return o.Written()
	}
	return o.SelectorsStableSince
}
