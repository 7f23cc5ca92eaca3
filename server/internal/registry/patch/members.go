package patch

import (
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// members are those of a document, at its top level, that a patch can change, and that
// what it does depends on.
type members struct {
	names []string
	any   bool // it may be any
}

// Within reports whether the patch surely changes nothing but these members of the
// document, and does the same whatever the others are.
func (p *Patch) Within(names ...string) bool {
	return !p.touched.any && !slices.ContainsFunc(p.touched.names, func(name string) bool { return !slices.Contains(names, name) })
}

// MayChange reports whether the patch may change a member of the document.
func (p *Patch) MayChange(name string) bool {
	return p.touched.any || slices.Contains(p.touched.names, name)
}

// add adds a member that a merge names. Directives of strategic merges, which begin
// with a dollar, may be about any.
func (m *members) add(name string) {
	m.any = m.any || strings.HasPrefix(name, "$")
	m.names = append(m.names, name)
}

// addOperation adds the members that an operation of a JSON patch names. The library
// ignores what precedes a pointer's first slash, so one that does not begin with it may
// be about any.
func (m *members) addOperation(op jsonpatch.Operation) {
	for _, get := range []func() (string, error){op.Path, op.From} {
		if path, err := get(); err == nil {
			pointer, rooted := strings.CutPrefix(path, "/")
			name, _, _ := strings.Cut(pointer, "/")
			m.any = m.any || !rooted || name == "" || strings.Contains(name, "~")
			m.names = append(m.names, name)
		}
	}
}

// applyToTouched applies a merge to the members that the patch names. The libraries parse
// and write a document as a whole, and each member of it is merged by itself.
func (p *Patch) applyToTouched(doc []byte, merge func(doc []byte) ([]byte, error)) ([]byte, error) {
	if p.touched.any {
		return merge(doc)
	}
	all, names := make([]member, 0, 8), sets.New(p.touched.names...)
	size := 0 // of those that the patch does not name
	err := eachMember(doc, func(m member) error {
		if all = append(all, m); !names.Has(m.name) {
			size += m.size()
		}
		return nil
	})
	if err != nil || size == 0 {
		return merge(doc) // which says what is wrong
	}
	touched, rest := make([]byte, 0, max(0, len(doc)-size)+2), make([]byte, 0, len(doc)+len(p.body))
	for _, m := range all {
		if names.Has(m.name) {
			touched = m.append(touched)
		} else {
			rest = m.append(rest)
		}
	}
	merged, err := merge(object(touched, 0))
	if err != nil {
		return nil, err
	}
	if err := eachMember(merged, func(m member) error { rest = m.append(rest); return nil }); err != nil {
		return nil, err
	}
	return object(rest, 0), nil
}

// member is one of an object, with its name and value as they stand in the text.
type member struct {
	name          string
	quoted, value []byte
}

func (m member) size() int { return len(m.quoted) + len(m.value) + len(`,:`) }

// append appends a comma and the member.
func (m member) append(to []byte) []byte { return append(m.appendName(to), m.value...) }

// appendName appends a comma, the member's name and a colon.
func (m member) appendName(to []byte) []byte {
	to = append(append(to, ','), m.quoted...)
	return append(to, ':')
}

// object makes an object of the members that were appended from start on.
func object(members []byte, start int) []byte {
	if len(members) == start {
		return append(members, "{}"...)
	}
	members[start] = '{'
	return append(members, '}')
}

// eachMember calls f with each member of an object, until that returns an error.
func eachMember(doc []byte, f func(member) error) error {
	s := jsonscan.Scanner{Data: doc}
	if err := s.Expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return err
		}
		name, err := key.Value()
		if err != nil {
			return err
		}
		value, err := s.Skip()
		if err == nil {
			err = f(member{name, key.Quoted, value})
		}
		if err != nil {
			return err
		}
	}
}
