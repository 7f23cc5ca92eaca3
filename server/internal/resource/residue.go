package resource

import "fmt"

// Residue makes what is worth keeping of an object that has been deleted, from
// its stored or cached form: kind and apiVersion, its metadata but for
// managedFields, and the selectable fields in their places. Attributes finds
// the same in it as in the whole. The result is new.
func (r *Resource) Residue(json []byte) ([]byte, error) {
	plan := r.Stored().extraction()
	s := residuum{extractor{scanner: scanner{data: json}, plan: plan}, make([]byte, 0, 512)}
	if err := s.object(plan.root, rootMember); err != nil {
		return nil, fmt.Errorf("residue of %s: %w", r.Stored().GroupResource(), err)
	}
	return append([]byte(nil), s.out...), nil
}

// residuum is one run over one object. Of the embedded extractor it uses the
// plan and the scanner.
type residuum struct {
	extractor
	out []byte
}

// rootMember and metadataMember say which members to keep beside those on the
// way to what the plan wants.
func rootMember(key []byte) bool { return string(key) == "kind" || string(key) == "apiVersion" }

func metadataMember(key []byte) bool { return string(key) != "managedFields" }

func noMember([]byte) bool { return false }

// object consumes an object and appends what is kept of it.
func (s *residuum) object(node *fieldNode, keep func(key []byte) bool) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	s.out = append(s.out, '{')
	empty := true
	for first := true; ; first = false {
		key, escaped, ok, err := s.member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		child, err := s.find(node, key, escaped)
		if err != nil {
			return err
		}
		if child == nil && !keep(key) {
			if err := s.skip(); err != nil {
				return err
			}
			continue
		}
		if !empty {
			s.out = append(s.out, ',')
		}
		empty = false
		s.out = append(append(append(s.out, '"'), key...), `":`...)
		if err := s.value(child, node == s.plan.root && string(key) == "metadata"); err != nil {
			return err
		}
	}
	s.out = append(s.out, '}')
	return nil
}

// value consumes a value that is kept, or of which something is.
func (s *residuum) value(node *fieldNode, metadata bool) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == '{' && metadata {
		return s.object(node, metadataMember)
	}
	if c == '{' && node != nil && len(node.children) > 0 {
		return s.object(node, noMember)
	}
	start := s.pos
	if err := s.skip(); err != nil {
		return err
	}
	s.out = append(s.out, s.data[start:s.pos]...)
	return nil
}
