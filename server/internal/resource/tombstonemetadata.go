package resource

import (
	"fmt"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// TombstoneMetadata reduces an object, in its stored or cached form, to what a
// tombstone keeps of it when it has been deleted: kind and apiVersion, its
// metadata but for managedFields, and the selectable fields at their paths.
// Attributes finds the same in the result as in the whole. The result is new.
func (r *Resource) TombstoneMetadata(json []byte) ([]byte, error) {
	plan := r.Stored().extraction()
	s := metadataReducer{scan: jsonscan.Scanner{Data: json}, plan: plan, out: make([]byte, 0, 512)}
	if err := s.object(plan.root, rootMember); err != nil {
		return nil, fmt.Errorf("tombstone metadata of %s: %w", r.Stored().GroupResource(), err)
	}
	return append([]byte(nil), s.out...), nil
}

// metadataReducer is one run over one object.
type metadataReducer struct {
	scan jsonscan.Scanner
	plan *extraction
	out  []byte
}

// rootMember and metadataMember say which members to keep beside those on the
// paths of the plan.
func rootMember(key []byte) bool { return string(key) == "kind" || string(key) == "apiVersion" }

func metadataMember(key []byte) bool { return string(key) != "managedFields" }

func noMember([]byte) bool { return false }

// object reads an object and appends the members that are kept.
func (s *metadataReducer) object(node *fieldNode, keep func(key []byte) bool) error {
	if err := s.scan.Expect('{'); err != nil {
		return err
	}
	s.out = append(s.out, '{')
	empty := true
	for first := true; ; first = false {
		key, ok, err := s.scan.Member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		child, err := node.find(key)
		if err != nil {
			return err
		}
		if child == nil && !keep(key.Raw()) {
			if _, err := s.scan.Skip(); err != nil {
				return err
			}
			continue
		}
		if !empty {
			s.out = append(s.out, ',')
		}
		empty = false
		s.out = append(append(s.out, key.Quoted...), ':')
		if err := s.value(child, node == s.plan.root && string(key.Raw()) == "metadata"); err != nil {
			return err
		}
	}
	s.out = append(s.out, '}')
	return nil
}

// value reads a value of which all or some is kept, and appends that.
func (s *metadataReducer) value(node *fieldNode, metadata bool) error {
	c := s.scan.Peek()
	if c == '{' && metadata {
		return s.object(node, metadataMember)
	}
	if c == '{' && node != nil && len(node.children) > 0 {
		return s.object(node, noMember)
	}
	value, err := s.scan.Skip()
	s.out = append(s.out, value...)
	return err
}
