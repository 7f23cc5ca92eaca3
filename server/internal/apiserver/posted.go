package apiserver

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// posted are the kinds that are only ever posted: questions, which are
// answered and forgotten, and bindings. They are in no store and no table.
var posted = []*resource.Resource{
	postedKind(corev1.SchemeGroupVersion, "Binding", "bindings", true, func() resource.Object { return &corev1.Binding{} }),
	postedKind(authenticationv1.SchemeGroupVersion, "SelfSubjectReview", "selfsubjectreviews", false,
		func() resource.Object { return &authenticationv1.SelfSubjectReview{} }),
	// What kubectl before 1.28 asks for its "auth whoami".
	postedKind(authenticationv1beta1.SchemeGroupVersion, "SelfSubjectReview", "selfsubjectreviews", false,
		func() resource.Object { return &authenticationv1beta1.SelfSubjectReview{} }),
	postedKind(authenticationv1.SchemeGroupVersion, "TokenReview", "tokenreviews", false,
		func() resource.Object { return &authenticationv1.TokenReview{} }),
	postedKind(authorizationv1.SchemeGroupVersion, "LocalSubjectAccessReview", "localsubjectaccessreviews", true,
		func() resource.Object { return &authorizationv1.LocalSubjectAccessReview{} }),
	postedKind(authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview", "selfsubjectaccessreviews", false,
		func() resource.Object { return &authorizationv1.SelfSubjectAccessReview{} }),
	postedKind(authorizationv1.SchemeGroupVersion, "SelfSubjectRulesReview", "selfsubjectrulesreviews", false,
		func() resource.Object { return &authorizationv1.SelfSubjectRulesReview{} }),
	postedKind(authorizationv1.SchemeGroupVersion, "SubjectAccessReview", "subjectaccessreviews", false,
		func() resource.Object { return &authorizationv1.SubjectAccessReview{} }),
}

func postedKind(gv schema.GroupVersion, kind, plural string, namespaced bool, empty func() resource.Object) *resource.Resource {
	return &resource.Resource{
		Group: gv.Group, Version: gv.Version, Kind: kind, Plural: plural, Singular: plural[:len(plural)-1],
		Namespaced: namespaced, Verbs: []string{verbCreate}, New: empty,
	}
}

// lookup finds what a path is about, in the table or among the posted kinds.
func (s *Server) lookup(group, version, plural string) *resource.Resource {
	if res := s.config.Resources.Lookup(group, version, plural); res != nil {
		return res
	}
	i := slices.IndexFunc(posted, func(r *resource.Resource) bool {
		return r.Plural == plural && r.Group == group && r.Version == version
	})
	if i < 0 {
		return nil
	}
	return posted[i]
}

func isPosted(res *resource.Resource) bool { return slices.Contains(posted, res) }

// withPosted adds the posted kinds to what discovery describes.
func withPosted(all []*resource.Resource) []*resource.Resource {
	return slices.Concat(all, posted)
}
