package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// resourceKey is a resource of a rule: "pods/log" is the subresource log of pods.
// "*" as resource without a subresource stands for all resources and subresources;
// with one, for that subresource of all resources.
type resourceKey struct{ group, resource, subresource string }

// splitResource splits "resource/subresource". A name that ends with the slash is
// one that no request asks for, and stays in one piece.
func splitResource(name string) (resource, subresource string) {
	i := strings.IndexByte(name, '/')
	if i < 0 || i == len(name)-1 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// keyOf returns the key of what a request is about. Only reviews ask for resources
// with a slash, which mean what the whole means.
func keyOf(group, resource, subresource string) resourceKey {
	if strings.IndexByte(resource, '/') < 0 {
		return resourceKey{group, resource, subresource}
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	resource, subresource = splitResource(resource)
	return resourceKey{group, resource, subresource}
}

// verbSet is a set of verbs: bits for the usual ones, and names for others.
type verbSet struct {
	bits   uint32
	others []string
}

// anyVerb is the bit of "*".
const anyVerb uint32 = 1 << 31

// verbBit returns the bit of a verb; 0 if it has none.
func verbBit(verb string) uint32 {
	switch verb {
	case rbacv1.VerbAll:
		return anyVerb
	case "get":
		return 1 << 0
	case "list":
		return 1 << 1
	case "watch":
		return 1 << 2
	case "create":
		return 1 << 3
	case "update":
		return 1 << 4
	case "patch":
		return 1 << 5
	case "delete":
		return 1 << 6
	case "deletecollection":
		return 1 << 7
	case "post":
		return 1 << 8
	case "put":
		return 1 << 9
	case "head":
		return 1 << 10
	case "impersonate":
		return 1 << 11
	case "bind":
		return 1 << 12
	case "escalate":
		return 1 << 13
	case "use":
		return 1 << 14
	}
	return 0
}

func verbsOf(names []string) verbSet {
	var s verbSet
	for _, name := range names {
		if bit := verbBit(name); bit != 0 {
			s.bits |= bit
		} else {
			s.others = append(s.others, name)
		}
	}
	return s
}

// has reports whether the set has a verb, whose bit is given with it.
func (s *verbSet) has(verb string, bit uint32) bool {
	if s.bits&(bit|anyVerb) != 0 {
		return true
	}
	if bit != 0 {
		return false
	}
	for _, other := range s.others {
		if other == verb {
			return true
		}
	}
	return false
}
