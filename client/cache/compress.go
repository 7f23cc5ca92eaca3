package cache

// appendDelta appends d. Two Deleted of one object in a row become one: the
// one that knows the final state.
func appendDelta[T any](deltas Deltas[T], d Delta[T]) Deltas[T] {
	if n := len(deltas); n > 0 && d.Type == Deleted && deltas[n-1].Type == Deleted {
		last := &deltas[n-1]
		if last.FinalStateUnknown && !d.FinalStateUnknown {
			*last = d
		}
		return deltas
	}
	return append(deltas, d)
}

// compress shortens the deltas of one key to at most three. A consumer that
// applies them ends in the same state:
//
//   - while no object took the place of another, only the first change and the
//     last state remain;
//   - when one did, the end of the first object stays visible, and so does the
//     last one, as Added; objects that came and went in between are dropped.
//
// It works in place.
func compress[T any](deltas Deltas[T]) Deltas[T] {
	last := deltas.Newest()
	end := lifeEnd(deltas)
	if end == len(deltas) {
		// One object: Added then Updated stays Added, so that its creation
		// is not mistaken for a change.
		first := deltas[0]
		clear(deltas)
		if first.Type == Added && last.Type != Deleted {
			return append(deltas[:0], Delta[T]{Type: Added, Object: last.Object})
		}
		if first.Type == Added {
			return append(deltas[:0], first, last)
		}
		return append(deltas[:0], last)
	}
	obituary := deltas[end-1]
	if obituary.Type != Deleted {
		// Its successor came without a deletion: the gap hid it.
		obituary = Delta[T]{Type: Deleted, Object: obituary.Object, FinalStateUnknown: true}
	}
	birth := deltas[0].Type == Added
	first := deltas[0]
	clear(deltas)
	out := deltas[:0]
	if birth {
		out = append(out, first)
	}
	out = append(out, obituary)
	if last.Type != Deleted {
		out = append(out, Delta[T]{Type: Added, Object: last.Object})
	}
	return out
}

// lifeEnd returns the number of leading deltas that are about the first
// object: up to its deletion, or up to another UID.
func lifeEnd[T any](deltas Deltas[T]) int {
	uid := uidOf(deltas[0].Object)
	for i, d := range deltas {
		if uidOf(d.Object) != uid {
			return i
		}
		if d.Type == Deleted {
			return i + 1
		}
	}
	return len(deltas)
}
