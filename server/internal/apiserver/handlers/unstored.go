package handlers

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// Unstored are the kinds that are in no store and no table. Clients can only create bindings, and
// reviews, which the server answers and does not keep. They can only read component statuses, which
// the server finds out for each request. They are not to be changed.
var Unstored = []*resource.Resource{
	bindings,
	componentStatuses,
	createOnlyKind(authenticationv1.SchemeGroupVersion, "SelfSubjectReview", "selfsubjectreviews", false,
		func() resource.Object { return &authenticationv1.SelfSubjectReview{} }),
	createOnlyKind(authenticationv1.SchemeGroupVersion, "TokenReview", "tokenreviews", false,
		func() resource.Object { return &authenticationv1.TokenReview{} }),
	createOnlyKind(authorizationv1.SchemeGroupVersion, "LocalSubjectAccessReview", "localsubjectaccessreviews", true,
		func() resource.Object { return &authorizationv1.LocalSubjectAccessReview{} }),
	createOnlyKind(authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview", "selfsubjectaccessreviews", false,
		func() resource.Object { return &authorizationv1.SelfSubjectAccessReview{} }),
	createOnlyKind(authorizationv1.SchemeGroupVersion, "SelfSubjectRulesReview", "selfsubjectrulesreviews", false,
		func() resource.Object { return &authorizationv1.SelfSubjectRulesReview{} }),
	createOnlyKind(authorizationv1.SchemeGroupVersion, "SubjectAccessReview", "subjectaccessreviews", false,
		func() resource.Object { return &authorizationv1.SubjectAccessReview{} }),
}

var (
	bindings          = createOnlyKind(corev1.SchemeGroupVersion, "Binding", "bindings", true, func() resource.Object { return &corev1.Binding{} })
	componentStatuses = componentStatusKind()
)

func createOnlyKind(gv schema.GroupVersion, kind, plural string, namespaced bool, empty func() resource.Object) *resource.Resource {
	return &resource.Resource{
		Group: gv.Group, Version: gv.Version, Kind: kind, Plural: plural, Singular: plural[:len(plural)-1],
		Namespaced: namespaced, Verbs: []string{request.VerbCreate}, New: empty,
	}
}

func componentStatusKind() *resource.Resource {
	res := &resource.Resource{
		Version: "v1", Kind: "ComponentStatus", ListKind: "ComponentStatusList", Plural: "componentstatuses", Singular: "componentstatus",
		ShortNames: []string{"cs"}, Verbs: []string{request.VerbGet, request.VerbList},
		New:         func() resource.Object { return &corev1.ComponentStatus{} },
		NewList:     func() runtime.Object { return &corev1.ComponentStatusList{} },
		Deprecation: "v1 ComponentStatus is deprecated in v1.19+",
	}
	res.Columns, res.Row = builtin.Columns(res.GroupVersionKind())
	return res
}

// LookupUnstored finds the resource of a path among Unstored; nil if it is none of them.
func LookupUnstored(group, version, plural string) *resource.Resource {
	i := slices.IndexFunc(Unstored, func(r *resource.Resource) bool {
		return r.Plural == plural && r.Group == group && r.Version == version
	})
	if i < 0 {
		return nil
	}
	return Unstored[i]
}

// IsUnstored reports whether a resource is one of Unstored.
func IsUnstored(res *resource.Resource) bool { return slices.Contains(Unstored, res) }

// isReview reports whether a resource is one of Unstored whose objects are answered when they are
// created.
func isReview(res *resource.Resource) bool {
	return IsUnstored(res) && res != bindings && res != componentStatuses
}
