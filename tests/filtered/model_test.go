package filtered

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// kind is a resource whose objects are read.
type kind struct{ group, version, plural, name string }

var (
	secrets = &kind{"", "v1", "secrets", "Secret"}
	widgets = &kind{"example.com", "v1", "widgets", "Widget"} // custom resources
)

// path is that of a collection; an empty namespace is all.
func (k *kind) path(namespace string) string {
	path := "/api/" + k.version
	if k.group != "" {
		path = "/apis/" + k.group + "/" + k.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

// state is an object at a revision and until its next one.
type state struct {
	revision int64
	exists   bool
	color    string // a label
	uid      string
	value    string // which no other state has
}

// setAt is a set since a revision.
type setAt struct {
	revision int64
	set      set
}

// changed is a revision at which an object changed.
type changed struct {
	revision int64
	key      string
}

type reader struct {
	identity *identity
	kind     *kind
}

// written is when a revision was made: between begun and acknowledged.
type written struct {
	revision            int64
	begun, acknowledged time.Time
}

// model is what is known of all revisions. It is filled by the writer, and read between the
// rounds, when nothing is written.
type model struct {
	objects map[*kind]map[string][]state // by "namespace/name", ascending
	changes map[*kind][]changed          // ascending
	policy  policy
	visible map[reader][]setAt    // ascending
	may     map[*identity][]setAt // whether impersonation is allowed
	written []written             // ascending
	latest  int64
}

func newModel() *model {
	m := &model{
		objects: map[*kind]map[string][]state{secrets: {}, widgets: {}}, changes: map[*kind][]changed{},
		policy:  policy{roles: map[string][]rbacv1.PolicyRule{}, bindings: map[string]bound{}},
		visible: map[reader][]setAt{}, may: map[*identity][]setAt{},
	}
	m.policyChanged(0)
	return m
}

// wrote adds a revision.
func (m *model) wrote(revision int64, begun time.Time) {
	m.latest = revision
	m.written = append(m.written, written{revision, begun, time.Now()})
}

func (m *model) objectChanged(k *kind, key string, s state) {
	m.objects[k][key] = append(m.objects[k][key], s)
	m.changes[k] = append(m.changes[k], changed{s.revision, key})
}

// policyChanged evaluates the policy, which has changed at a revision.
func (m *model) policyChanged(revision int64) {
	note := func(sets []setAt, s set) []setAt {
		if len(sets) > 0 && sets[len(sets)-1].set == s {
			return sets
		}
		return append(sets, setAt{revision, s})
	}
	for _, i := range identities {
		m.may[i] = note(m.may[i], m.policy.mayRead(i))
		for _, k := range []*kind{secrets, widgets} {
			r := reader{i, k}
			m.visible[r] = note(m.visible[r], m.policy.visible(i, k))
		}
	}
}

// at returns the last element that is not after a revision, nil if there is none.
func at[E any](list []E, revision int64, of func(*E) int64) *E {
	n, _ := slices.BinarySearchFunc(list, revision+1, func(e E, r int64) int { return cmp.Compare(of(&e), r) })
	if n == 0 {
		return nil
	}
	return &list[n-1]
}

func setRevision(s *setAt) int64   { return s.revision }
func stateRevision(s *state) int64 { return s.revision }

// stateAt returns an object at a revision, nil if it does not exist.
func (m *model) stateAt(k *kind, key string, revision int64) *state {
	if s := at(m.objects[k][key], revision, stateRevision); s != nil && s.exists {
		return s
	}
	return nil
}

// sees reports whether a set has a namespace at some revision between two.
func sees(sets []setAt, from, to int64, namespace string) bool {
	if at(sets, from, setRevision).set.has(namespace) {
		return true
	}
	for i := range sets {
		if sets[i].revision > from && sets[i].revision <= to && sets[i].set.has(namespace) {
			return true
		}
	}
	return false
}

// acknowledged returns the latest revision whose writer knew of it at a time.
func (m *model) acknowledged(t time.Time) int64 {
	n, _ := slices.BinarySearchFunc(m.written, t, func(w written, t time.Time) int { return w.acknowledged.Compare(t) })
	if n == 0 {
		return 0
	}
	return m.written[n-1].revision
}

// begun returns the latest revision that was asked for at a time.
func (m *model) begun(t time.Time) int64 {
	n, _ := slices.BinarySearchFunc(m.written, t, func(w written, t time.Time) int { return w.begun.Compare(t) })
	if n == 0 {
		return 0
	}
	return m.written[n-1].revision
}

// selection is which of the visible objects a client asks for.
type selection struct {
	reader
	color string // a label; empty: any
	half  bool   // only those with a UID in the lower half of the hash
}

func (s *selection) matches(o *state) bool {
	return o != nil && o.exists && (s.color == "" || o.color == s.color) && (!s.half || inLowerHalf(o.uid))
}

// inLowerHalf is by the hash of KEP-5866.
func inLowerHalf(uid string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // it never fails
	return h.Sum64() < 1<<63
}

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// view is the formula: the objects of state(V) in namespaces that policy(V) allows.
func (m *model) view(s *selection, revision int64) map[string]int64 {
	out, visible := map[string]int64{}, at(m.visible[s.reader], revision, setRevision).set
	for key := range m.objects[s.kind] {
		if !visible.has(namespaceOf(key)) {
			continue
		}
		if o := m.stateAt(s.kind, key, revision); s.matches(o) {
			out[key] = o.revision
		}
	}
	return out
}

// event is what a watch sends of an object.
type event struct {
	kind     string // ADDED, MODIFIED or DELETED
	key      string
	revision int64
}

// expected is an event that a watch has to send, because of a change at a revision.
type expected struct {
	event
	change int64
}

// events are those of a watch after a revision, in their order.
func (m *model) events(s *selection, after int64) (out []expected) {
	sets, changes := m.visible[s.reader], m.changes[s.kind]
	before := at(sets, after, setRevision).set
	for i := range sets {
		if sets[i].revision <= after {
			continue
		}
		out = append(out, m.objectEvents(s, changes, before, after, sets[i].revision)...)
		out = append(out, m.policyEvents(s, before, sets[i].set, sets[i].revision)...)
		before, after = sets[i].set, sets[i].revision
	}
	return append(out, m.objectEvents(s, changes, before, after, m.latest+1)...)
}

// objectEvents are those after one revision and before another, between which visible is
// visible.
func (m *model) objectEvents(s *selection, changes []changed, visible set, after, before int64) (out []expected) {
	first, _ := slices.BinarySearchFunc(changes, after+1, func(c changed, r int64) int { return cmp.Compare(c.revision, r) })
	for _, c := range changes[first:] {
		if c.revision >= before {
			break
		}
		if !visible.has(namespaceOf(c.key)) {
			continue
		}
		was, is := s.matches(m.stateAt(s.kind, c.key, c.revision-1)), s.matches(m.stateAt(s.kind, c.key, c.revision))
		kinds := map[[2]bool]string{{false, true}: "ADDED", {true, true}: "MODIFIED", {true, false}: "DELETED"}
		if kind := kinds[[2]bool{was, is}]; kind != "" {
			out = append(out, expected{event{kind, c.key, c.revision}, c.revision})
		}
	}
	return out
}

// policyEvents are those of a change of what is visible: first what is withdrawn, then what
// is granted.
func (m *model) policyEvents(s *selection, before, now set, revision int64) (out []expected) {
	var withdrawn, granted []expected
	for _, key := range slices.Sorted(maps.Keys(m.objects[s.kind])) {
		was, is := before.has(namespaceOf(key)), now.has(namespaceOf(key))
		o := m.stateAt(s.kind, key, revision)
		switch {
		case was == is || !s.matches(o):
		case was:
			withdrawn = append(withdrawn, expected{event{"DELETED", key, revision - 1}, revision})
		default:
			granted = append(granted, expected{event{"ADDED", key, o.revision}, revision})
		}
	}
	grants := false // of any namespace, whether or not it has objects
	for _, namespace := range namespaces {
		grants = grants || now.has(namespace) && !before.has(namespace)
	}
	if len(withdrawn) > 0 && !grants {
		withdrawn[len(withdrawn)-1].revision = revision
	}
	return append(withdrawn, granted...)
}
