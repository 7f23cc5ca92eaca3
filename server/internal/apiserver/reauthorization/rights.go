package reauthorization

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Rights are what a watch needs: all of them, for as long as it is open. They are not
// copied, and must not be modified.
type Rights struct {
	// Watch is the watch itself. Required.
	Watch *auth.Attributes
	// Impersonation is what the user of the request must be allowed for the watch to be
	// that of another user: all of one of the alternatives. nil if it is its own.
	Impersonation []iter.Seq[auth.Attributes]
	// Filtered says that the watch follows the rights of its user by itself, namespace by
	// namespace: it needs only those of Impersonation.
	Filtered bool
}

// None reports whether nothing is needed.
func (r *Rights) None() bool { return r.Filtered && len(r.Impersonation) == 0 }

func (r *Rights) equal(o *Rights) bool {
	return r.Filtered == o.Filtered && equal(r.Watch, o.Watch) && slices.EqualFunc(r.Impersonation, o.Impersonation, equalAll)
}

func equalAll(a, b iter.Seq[auth.Attributes]) bool {
	next, stop := iter.Pull(b)
	defer stop()
	for one := range a {
		if other, ok := next(); !ok || !equal(&one, &other) {
			return false
		}
	}
	_, more := next()
	return !more
}

func equal(a, b *auth.Attributes) bool {
	return a.Verb == b.Verb && a.Path == b.Path &&
		a.Group == b.Group && a.Version == b.Version && a.Resource == b.Resource &&
		a.Subresource == b.Subresource && a.Namespace == b.Namespace && a.Name == b.Name && a.FieldSelector == b.FieldSelector && a.LabelSelector == b.LabelSelector &&
		a.User.Name == b.User.Name && a.User.UID == b.User.UID && slices.Equal(a.User.Groups, b.User.Groups) &&
		maps.EqualFunc(a.User.Extra, b.User.Extra, slices.Equal[[]string])
}

var seed = maphash.MakeSeed()

// hash is the same for equal rights. It leaves out what clients cannot choose freely while
// the rest stays the same: rights of one hash are searched one after the other.
func (r *Rights) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(a *auth.Attributes) {
		for _, s := range [...]string{a.User.Name, a.User.UID, a.Verb, a.Path, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.FieldSelector, a.LabelSelector} {
			_, _ = h.WriteString(s) // it never fails
			_ = h.WriteByte(0)
		}
	}
	write(r.Watch)
	for _, rights := range r.Impersonation {
		for right := range rights {
			write(&right)
		}
	}
	extra := uint64(0) // in any order
	for key, values := range r.Watch.User.Extra {
		one := maphash.String(seed, key)
		for _, value := range values {
			one = one*31 + maphash.String(seed, value)
		}
		extra += one
	}
	return h.Sum64() + extra
}
