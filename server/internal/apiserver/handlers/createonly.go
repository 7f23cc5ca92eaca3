package handlers

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// CreateOnly are the kinds that clients can only create: reviews, which the
// server answers and does not keep, and bindings. They are in no store and no
// table. They are not to be changed.
var CreateOnly = []*resource.Resource{
	createOnlyKind(corev1.SchemeGroupVersion, "Binding", "bindings", true, func() resource.Object { return &corev1.Binding{} }),
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

func createOnlyKind(gv schema.GroupVersion, kind, plural string, namespaced bool, empty func() resource.Object) *resource.Resource {
	return &resource.Resource{
		Group: gv.Group, Version: gv.Version, Kind: kind, Plural: plural, Singular: plural[:len(plural)-1],
		Namespaced: namespaced, Verbs: []string{request.VerbCreate}, New: empty,
	}
}

// LookupCreateOnly finds the resource of a path among CreateOnly; nil if it is none of them.
func LookupCreateOnly(group, version, plural string) *resource.Resource {
	i := slices.IndexFunc(CreateOnly, func(r *resource.Resource) bool {
		return r.Plural == plural && r.Group == group && r.Version == version
	})
	if i < 0 {
		return nil
	}
	return CreateOnly[i]
}

func isCreateOnly(res *resource.Resource) bool { return slices.Contains(CreateOnly, res) }
