package registry

// WritesInTurns is how many objects have turns.
func (s *Set) WritesInTurns() int64 { return s.contention.Len() }
