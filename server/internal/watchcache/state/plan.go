package state

// Plan says how Select finds what a selection selects, for who looks at a slow list.
type Plan struct {
	Access Access
	// Candidates is how many objects are looked at, at most, if the whole collection is read
	// from its beginning.
	Candidates int
}

// Access is the way by which a snapshot finds objects.
type Access string

// The ways, in the order of what they cost.
const (
	// AccessKey looks one object up.
	AccessKey Access = "key"
	// AccessRange reads the objects of a namespace, or all, and compares none with a selector.
	AccessRange Access = "range"
	// AccessFilters compares the objects of those leaves of the tree whose filters may hold what the
	// selection wants: a name, a label or the value of a field.
	AccessFilters Access = "filters"
	// AccessScan compares each object of a namespace, or of all.
	AccessScan Access = "scan"
)

// Plan returns how Select reads a selection, without reading it. Candidates are counted up to most.
func (s Snapshot) Plan(sel *Selection, most int) Plan {
	return Plan{Access: s.access(sel), Candidates: s.Candidates(sel, most)}
}

func (s Snapshot) access(sel *Selection) Access {
	switch {
	case sel == nil:
		return AccessRange
	case sel.Name != "" && (sel.Namespace != "" || !s.namespaced):
		return AccessKey
	case len(sel.wantedTraits()) > 0:
		return AccessFilters
	case sel.filtersObjects():
		return AccessScan
	}
	return AccessRange
}
