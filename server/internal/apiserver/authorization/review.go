package authorization

import (
	"cmp"
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

var specPath = field.NewPath("spec")

func invalid(kind schema.GroupKind, errs field.ErrorList) error {
	return apierrors.NewInvalid(kind, "", errs)
}

// Review fills in the answer of a review that a user has sent to a namespace ("" if
// the review is cluster-scoped). kind names it in errors. Any other kind than
// those of authorization.k8s.io stays as it is.
func (a *Authorizer) Review(ctx context.Context, user auth.User, namespace string, kind schema.GroupKind, review resource.Object) error {
	switch v := review.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		if errs := oneQuestion(v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes); len(errs) > 0 {
			return invalid(kind, errs)
		}
		a.reviewAccess(ctx, user, v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes, &v.Status)
	case *authorizationv1.SubjectAccessReview:
		return a.reviewSubject(ctx, kind, &v.Spec, &v.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		if attributes := v.Spec.ResourceAttributes; attributes != nil && attributes.Namespace != namespace {
			return status.BadRequest("spec.resourceAttributes.namespace must match namespace: %v", namespace)
		}
		if v.Spec.NonResourceAttributes != nil {
			return invalid(kind, field.ErrorList{field.Invalid(specPath.Child("nonResourceAttributes"), v.Spec.NonResourceAttributes,
				"disallowed on this kind of request")})
		}
		return a.reviewSubject(ctx, kind, &v.Spec, &v.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		if v.Spec.Namespace == "" {
			return status.BadRequest("no namespace on request")
		}
		v.Status = a.reviewRules(ctx, user, v.Spec.Namespace)
	}
	return nil
}

func (a *Authorizer) reviewSubject(ctx context.Context, kind schema.GroupKind, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	errs := oneQuestion(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("user"), spec.User, "at least one of user or group must be specified"))
	}
	if len(errs) > 0 {
		return invalid(kind, errs)
	}
	user := auth.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if user.Extra == nil {
			user.Extra = make(map[string][]string, len(spec.Extra))
		}
		user.Extra[key] = values
	}
	a.reviewAccess(ctx, user, spec.ResourceAttributes, spec.NonResourceAttributes, status)
	return nil
}

// oneQuestion refuses a review that asks nothing, or two things, or with wrong selectors.
func oneQuestion(res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	switch {
	case res != nil && path != nil:
		return field.ErrorList{field.Invalid(specPath.Child("nonResourceAttributes"), path, "cannot be specified in combination with resourceAttributes")}
	case res == nil && path == nil:
		return field.ErrorList{field.Invalid(specPath.Child("resourceAttributes"), res, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	case res != nil:
		return validateSelectors(res)
	}
	return nil
}

func (a *Authorizer) reviewAccess(ctx context.Context, user auth.User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) {
	asked := auth.Attributes{User: user}
	var problems []string
	if res != nil {
		asked.Verb, asked.Namespace, asked.Name = res.Verb, res.Namespace, res.Name
		asked.Group, asked.Version, asked.Resource, asked.Subresource = res.Group, cmp.Or(res.Version, "*"), res.Resource, res.Subresource
		var err error
		if asked.FieldSelector, err = fieldSelectorOf(res.FieldSelector); err != nil {
			problems = append(problems, ignored("fieldSelector", asked.FieldSelector))
		}
		if asked.LabelSelector, err = labelSelectorOf(res.LabelSelector); err != nil {
			problems = append(problems, ignored("labelSelector", asked.LabelSelector))
		}
	} else {
		asked.Verb, asked.Path = path.Verb, path.Path
	}
	decision, reason, err := a.decide.Authorize(ctx, asked)
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == auth.Allow, Denied: decision == auth.Deny, Reason: reason,
	}
	if err != nil {
		problems = append([]string{err.Error()}, problems...)
	}
	status.EvaluationError = strings.Join(problems, "; ")
}

// reviewRules lists what the user may do, as far as the authorizer can list it.
func (a *Authorizer) reviewRules(ctx context.Context, user auth.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	rules := a.decide.(auth.RuleLister).Rules(ctx, user, namespace)
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
