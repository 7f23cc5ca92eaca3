package apiserver

import (
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
)

// posted are the kinds that are only ever posted: questions, which are
// answered and forgotten, and bindings. They are in no store and no table.
var posted = []*resource.Resource{
	postedKind(corev1.SchemeGroupVersion, "Binding", "bindings", true, func() resource.Object { return &corev1.Binding{} }),
	postedKind(authenticationv1.SchemeGroupVersion, "SelfSubjectReview", "selfsubjectreviews", false,
		func() resource.Object { return &authenticationv1.SelfSubjectReview{} }),
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

// post answers POST of a posted kind.
func (s *Server) post(w http.ResponseWriter, r *http.Request, q *request) error {
	if q.resource.Kind == "Binding" {
		return s.bind(w, r, q)
	}
	x := &writer{w: w, r: r, q: q}
	if err := x.readOptions(createOptions); err != nil {
		return err
	}
	var err error
	if x.kind, err = bodyType(r); err != nil {
		return err
	}
	if x.body, err = s.readBody(w, r); err != nil {
		return err
	}
	review, err := x.decode()
	if err != nil {
		return err
	}
	if err := s.review(r, q, review); err != nil {
		return err
	}
	return writeObject(w, r, http.StatusCreated, review)
}

// review fills in the answer.
func (s *Server) review(r *http.Request, q *request, review resource.Object) error {
	switch v := review.(type) {
	case *authenticationv1.SelfSubjectReview:
		v.Status.UserInfo = userInfo(q.user)
	case *authenticationv1.TokenReview:
		if v.Spec.Token == "" {
			return badRequest("spec.token is missing: it is what is reviewed")
		}
		user, err := s.userOfToken(v.Spec.Token)
		if v.Status.Authenticated = err == nil; err == nil {
			v.Status.User = userInfo(user)
		} else {
			v.Status.Error = "the token is not known"
		}
	case *authorizationv1.SelfSubjectAccessReview:
		return s.reviewAccess(r, q.user, v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes, &v.Status)
	case *authorizationv1.SubjectAccessReview:
		return s.reviewSubject(r, &v.Spec, &v.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		if a := v.Spec.ResourceAttributes; a == nil || a.Namespace != q.namespace {
			return badRequest("spec.resourceAttributes.namespace must be the namespace of the review, %q", q.namespace)
		}
		return s.reviewSubject(r, &v.Spec, &v.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		s.reviewRules(r, q, v)
	}
	return nil
}

func userInfo(user User) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: user.Name, UID: user.UID, Groups: user.Groups}
}

func (s *Server) reviewSubject(r *http.Request, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	if spec.User == "" && len(spec.Groups) == 0 {
		return badRequest("spec.user or spec.groups must be given: at least one of them is who is asked about")
	}
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	return s.reviewAccess(r, user, spec.ResourceAttributes, spec.NonResourceAttributes, status)
}

func (s *Server) reviewAccess(r *http.Request, user User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) error {
	a := Attributes{User: user}
	switch {
	case (res == nil) == (path == nil):
		return badRequest("exactly one of spec.resourceAttributes and spec.nonResourceAttributes must be given")
	case res != nil:
		a.Verb, a.Namespace, a.Name = res.Verb, res.Namespace, res.Name
		a.Group, a.Version, a.Resource, a.Subresource = res.Group, res.Version, res.Resource, res.Subresource
	default:
		a.Verb, a.Path = path.Verb, path.Path
	}
	err := s.config.Authorizer.Authorize(r.Context(), a)
	if status.Allowed = err == nil; err != nil {
		status.Reason = err.Error()
	}
	return nil
}

// reviewRules says "everything" of those who may do everything. An Authorizer
// decides one case at a time and lists no rules, so that for others the answer
// is said to be incomplete.
func (s *Server) reviewRules(r *http.Request, q *request, v *authorizationv1.SelfSubjectRulesReview) {
	all := []string{"*"}
	v.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	err := s.config.Authorizer.Authorize(r.Context(), Attributes{
		User: q.user, Verb: "*", Group: "*", Version: "*", Resource: "*", Namespace: v.Spec.Namespace,
	})
	if err != nil {
		v.Status.Incomplete, v.Status.EvaluationError = true, "the authorizer in force does not list rules"
		return
	}
	v.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}
	v.Status.NonResourceRules = []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}}
}

// withPosted adds the posted kinds to what discovery describes.
func withPosted(all []*resource.Resource) []*resource.Resource {
	return slices.Concat(all, posted)
}
