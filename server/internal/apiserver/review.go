package apiserver

import (
	"errors"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

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
	if x.mediaType, err = bodyType(r); err != nil {
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
	case *authenticationv1beta1.SelfSubjectReview:
		v.Status.UserInfo = userInfo(q.user)
	case *authenticationv1.TokenReview:
		return s.reviewToken(r, v)
	case *authorizationv1.SelfSubjectAccessReview:
		if errs := oneQuestion(v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes); len(errs) > 0 {
			return q.invalid(errs)
		}
		s.reviewAccess(r, q.user, v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes, &v.Status)
	case *authorizationv1.SubjectAccessReview:
		return s.reviewSubject(r, q, &v.Spec, &v.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		if a := v.Spec.ResourceAttributes; a != nil && a.Namespace != q.namespace {
			return status.BadRequest("spec.resourceAttributes.namespace must match namespace: %v", q.namespace)
		}
		if v.Spec.NonResourceAttributes != nil {
			return q.invalid(field.ErrorList{field.Invalid(specPath.Child("nonResourceAttributes"), v.Spec.NonResourceAttributes,
				"disallowed on this kind of request")})
		}
		return s.reviewSubject(r, q, &v.Spec, &v.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		if v.Spec.Namespace == "" {
			return status.BadRequest("no namespace on request")
		}
		v.Status = s.reviewRules(r, q.user, v.Spec.Namespace)
	}
	return nil
}

var specPath = field.NewPath("spec")

func (q *request) invalid(errs field.ErrorList) error {
	return apierrors.NewInvalid(q.resource.GroupVersionKind().GroupKind(), "", errs)
}

// reviewToken says whom a token stands for. Like Kubernetes, it answers about
// the server's own audiences if none is named.
func (s *Server) reviewToken(r *http.Request, v *authenticationv1.TokenReview) error {
	if v.Spec.Token == "" {
		return status.BadRequest("token is required for TokenReview in authentication")
	}
	audiences := v.Spec.Audiences
	if len(audiences) == 0 {
		audiences = s.config.Audiences
	}
	identity, err := s.identify(r, v.Spec.Token, audiences)
	switch {
	case errors.Is(err, auth.ErrUnknownToken):
		v.Status.Error = "[invalid bearer token]"
	case err != nil:
		v.Status.Error = "[invalid bearer token, " + err.Error() + "]"
	default:
		v.Status.Authenticated, v.Status.User, v.Status.Audiences = true, userInfo(identity.User), identity.Audiences
		// A token that is for nobody in particular is for the server.
		if identity.Audiences == nil && len(v.Spec.Audiences) > 0 {
			v.Status.Audiences = intersect(v.Spec.Audiences, s.config.Audiences)
			if len(v.Status.Audiences) == 0 {
				v.Status = authenticationv1.TokenReviewStatus{Error: "[invalid bearer token, token audiences do not include any of those asked for]"}
			}
		}
	}
	return nil
}

func intersect(a, b []string) []string {
	var both []string
	for _, s := range a {
		for _, t := range b {
			if s == t {
				both = append(both, s)
			}
		}
	}
	return both
}

func userInfo(user auth.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: user.Name, UID: user.UID, Groups: user.Groups}
	for key, values := range user.Extra {
		if info.Extra == nil {
			info.Extra = make(map[string]authenticationv1.ExtraValue, len(user.Extra))
		}
		info.Extra[key] = values
	}
	return info
}

func (s *Server) reviewSubject(r *http.Request, q *request, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	errs := oneQuestion(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("user"), spec.User, "at least one of user or group must be specified"))
	}
	if len(errs) > 0 {
		return q.invalid(errs)
	}
	user := auth.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if user.Extra == nil {
			user.Extra = make(map[string][]string, len(spec.Extra))
		}
		user.Extra[key] = values
	}
	s.reviewAccess(r, user, spec.ResourceAttributes, spec.NonResourceAttributes, status)
	return nil
}

// oneQuestion refuses a review that asks nothing, or two things.
func oneQuestion(res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	switch {
	case res != nil && path != nil:
		return field.ErrorList{field.Invalid(specPath.Child("nonResourceAttributes"), path, "cannot be specified in combination with resourceAttributes")}
	case res == nil && path == nil:
		return field.ErrorList{field.Invalid(specPath.Child("resourceAttributes"), res, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

func (s *Server) reviewAccess(r *http.Request, user auth.User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) {
	a := auth.Attributes{User: user}
	if res != nil {
		a.Verb, a.Namespace, a.Name = res.Verb, res.Namespace, res.Name
		a.Group, a.Version, a.Resource, a.Subresource = res.Group, res.Version, res.Resource, res.Subresource
	} else {
		a.Verb, a.Path = path.Verb, path.Path
	}
	decision, reason, err := s.config.Authorizer.Authorize(r.Context(), a)
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == auth.Allow, Denied: decision == auth.Deny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
}

// reviewRules lists what the user may do, as far as the authorizer can list it.
func (s *Server) reviewRules(r *http.Request, user auth.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	rules := s.config.Authorizer.(auth.RuleLister).Rules(r.Context(), user, namespace)
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: rules.Incomplete, EvaluationError: rules.Problem,
	}
	for _, rule := range rules.Resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.Groups, Resources: rule.Resources, ResourceNames: rule.Names,
		})
	}
	for _, rule := range rules.NonResources {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.Paths})
	}
	return status
}
