package request

import "strings"

// Path is the parsed path of a request for objects. Whether there is such a
// resource is not known yet.
type Path struct {
	Group, Version    string
	Watch             bool // the legacy /watch/ prefix
	Namespace, Plural string
	Name, Subresource string
	Rest              string // what follows the subresource, without a leading slash
	Namespaced        bool   // the path says namespaces/{namespace}/
}

// ParsePath splits the path of a request for objects. ok is false if it is
// not one: then it is discovery, health or unknown.
func ParsePath(path string) (t Path, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "watch" {
		t.Watch, parts = true, parts[1:]
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && !namespaceSubresource(t.Group, parts[2:]) {
		t.Namespaced, t.Namespace, parts = true, parts[1], parts[2:]
	}
	for i, part := range parts {
		if part == "" && i < 3 {
			return t, false
		}
	}
	switch n := len(parts); {
	case n == 0:
		return t, false
	case n > 3:
		t.Rest = strings.Join(parts[3:], "/")
		fallthrough
	case n == 3:
		t.Subresource = parts[2]
		fallthrough
	case n == 2:
		t.Name = parts[1]
		fallthrough
	default:
		t.Plural = parts[0]
	}
	return t, !t.Namespaced || t.Namespace != ""
}

// namespaceSubresource distinguishes /api/v1/namespaces/x/status, a subresource
// of the namespace, from /api/v1/namespaces/x/pods, a collection in it.
func namespaceSubresource(group string, rest []string) bool {
	return group == "" && len(rest) == 1 && (rest[0] == "status" || rest[0] == "finalize")
}
