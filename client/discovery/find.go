package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func byKind(all []Resource, kind schema.GroupKind, versions []string) (Resource, bool) {
	if len(versions) == 0 {
		return first(all, func(r Resource) bool { return r.Preferred && r.Mapping.Kind.GroupKind() == kind })
	}
	for _, version := range versions {
		if r, ok := first(all, func(r Resource) bool { return r.Mapping.Kind == kind.WithVersion(version) }); ok {
			return r, true
		}
	}
	return Resource{}, false
}

func byResource(all []Resource, resource schema.GroupVersionResource) (Resource, bool) {
	return first(all, func(r Resource) bool {
		gvr := r.GroupVersionResource()
		return gvr.GroupResource() == resource.GroupResource() && (r.Preferred && resource.Version == "" || gvr.Version == resource.Version)
	})
}

// byName tries what comes after the first dot as a version and a group, then as a
// group, as kubectl does.
func byName(all []Resource, name string) (Resource, bool) {
	name = strings.ToLower(name)
	resource, rest, _ := strings.Cut(name, ".")
	if resource == "" {
		return Resource{}, false
	}
	if version, group, ok := strings.Cut(rest, "."); ok {
		if r, ok := named(all, resource, func(r Resource) bool {
			return r.Mapping.Kind.Version == version && r.Mapping.Kind.Group == group
		}); ok {
			return r, true
		}
	}
	if rest == "" {
		return named(all, resource, func(r Resource) bool { return r.Preferred })
	}
	if r, ok := named(all, resource, func(r Resource) bool { return r.Preferred && r.Mapping.Kind.Group == rest }); ok {
		return r, true
	}
	return named(all, resource, func(r Resource) bool { return r.Preferred && strings.HasPrefix(r.Mapping.Kind.Group, rest) })
}

// namesGroup returns whether byName could find a name in a group version because of the
// group that it has. A name without one may be in any group.
func namesGroup(name string, gv schema.GroupVersion) bool {
	_, rest, _ := strings.Cut(strings.ToLower(name), ".")
	if rest == "" {
		return false
	}
	if version, group, ok := strings.Cut(rest, "."); ok && mayHave(gv, group, version) {
		return true
	}
	return gv.Group == anyName || strings.HasPrefix(gv.Group, rest)
}

// named looks for full names first, so that no short name hides a resource.
func named(all []Resource, name string, allowed func(Resource) bool) (Resource, bool) {
	if r, ok := first(all, func(r Resource) bool {
		return allowed(r) && (r.Mapping.Resource == name || r.Singular == name || strings.ToLower(r.Mapping.Kind.Kind) == name)
	}); ok {
		return r, true
	}
	return first(all, func(r Resource) bool { return allowed(r) && slices.Contains(r.ShortNames, name) })
}

func first(all []Resource, is func(Resource) bool) (Resource, bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Resource{}, false
}
