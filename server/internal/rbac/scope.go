package rbac

import (
	"slices"
	"sync/atomic"
)

const (
	// fewRoles is how many roles of a scope are asked one by one. Most subjects have
	// fewer.
	fewRoles = 8
	// scansBeforeMerge is how many times more roles than a scope has are asked before
	// its roles are compiled together. That costs about as much as these questions.
	scansBeforeMerge = 16
)

// scope is where a subject has roles: everywhere, or in one namespace. Its roles are
// guarded by the lock of the Index.
type scope struct {
	roles     []boundRole
	positions map[*role]int // in roles, once there are more than fewRoles

	// merged are the rules of all roles, compiled together; nil until that is
	// worth while, without room, and after a change. It is written under the read lock.
	merged  atomic.Pointer[ruleSet]
	scanned atomic.Int64 // roles that were asked one by one since the last change
}

// boundRole is a role that a subject has, with the bindings that give it.
type boundRole struct {
	role *role
	at   int // in role.scopes
	by   []grant
}

// grant is one subject of a binding.
type grant struct {
	binding *binding
	subject int // in binding.subjects
}

// allows returns the position of a role that allows what is asked, or notFound. The scope
// is a namespace's, or "". The roles that it adds to later it does not ask.
func (s *scope) allows(q *question, namespace string, room *compiledRoom, later *unasked) int32 {
	if len(s.roles) > fewRoles {
		if merged := s.merge(namespace, room); merged != nil {
			return merged.allows(q)
		}
	}
	for i := range s.roles {
		rules := s.roles[i].role.compiled
		if rules != nil && !later.takes(rules, &s.roles[i]) && rules.allow(q, room) {
			return int32(i)
		}
	}
	return notFound
}

// merge returns the rules of all roles, or nil as long as it is cheaper to ask them
// one by one, or if there is no room.
func (s *scope) merge(namespace string, room *compiledRoom) *ruleSet {
	if merged := s.merged.Load(); merged != nil {
		return merged
	}
	n := int64(len(s.roles))
	if s.scanned.Add(n) <= scansBeforeMerge*n {
		return nil
	}
	keys := s.keys()
	if keys > maxCompiledKeys {
		return nil
	}
	merged := room.compile(namespace, keys, func() *ruleSet {
		set := new(ruleSet)
		for i := range s.roles {
			set.add(s.roles[i].role.rules, int32(i))
		}
		return set
	})
	s.merged.Store(merged)
	return merged
}

// keys returns how many keys the rules of the roles are compiled to, at most.
func (s *scope) keys() (n int) {
	for i := range s.roles {
		if rules := s.roles[i].role.compiled; rules != nil {
			n += rules.keys
		}
	}
	return n
}

// changed drops what was made of the roles as they were.
func (s *scope) changed() {
	s.merged.Store(nil)
	s.scanned.Store(0)
}

func (s *scope) position(r *role) int {
	if s.positions != nil {
		if i, ok := s.positions[r]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(s.roles, func(b boundRole) bool { return b.role == r })
}

func (s *scope) add(r *role, g grant) {
	if i := s.position(r); i >= 0 {
		s.roles[i].by = append(s.roles[i].by, g)
		return
	}
	s.roles = append(s.roles, boundRole{r, len(r.scopes), []grant{g}})
	r.scopes = append(r.scopes, s)
	switch {
	case s.positions != nil:
		s.positions[r] = len(s.roles) - 1
	case len(s.roles) > fewRoles:
		s.positions = make(map[*role]int, len(s.roles))
		for i := range s.roles {
			s.positions[s.roles[i].role] = i
		}
	}
	s.changed()
}

// remove removes what a binding gives, and reports whether no role is left.
func (s *scope) remove(r *role, b *binding) (empty bool) {
	i := s.position(r)
	if i < 0 {
		return len(s.roles) == 0
	}
	by := slices.DeleteFunc(s.roles[i].by, func(g grant) bool { return g.binding == b })
	s.roles[i].by = by
	if len(by) > 0 {
		return false
	}
	r.leave(s.roles[i].at)
	last := len(s.roles) - 1
	s.roles[i] = s.roles[last]
	s.roles[last] = boundRole{}
	s.roles = s.roles[:last]
	if s.positions != nil {
		delete(s.positions, r)
		if i < last {
			s.positions[s.roles[i].role] = i
		}
	}
	s.changed()
	return last == 0
}

// leave removes one of the role's scopes. The last one takes its place.
func (r *role) leave(at int) {
	last := len(r.scopes) - 1
	if at < last {
		moved := r.scopes[last]
		r.scopes[at], moved.roles[moved.position(r)].at = moved, at
	}
	r.scopes[last] = nil
	r.scopes = r.scopes[:last]
}
