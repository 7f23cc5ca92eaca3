package authorization

import (
	"cmp"
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

var specPath = field.NewPath("spec")

// Review fills in the answer of a review that a user has sent to a namespace ("" if
// the review is cluster-scoped), and returns what is sent back. Any other kind than
// those of authorization.k8s.io stays as it is.
func (a *Authorizer) Review(ctx context.Context, user auth.User, namespace string, review resource.Object) (resource.Object, error) {
	switch v := review.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		errs := append(oneQuestion(v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes), withoutMetadata(v.ObjectMeta, "must be empty")...)
		if len(errs) > 0 {
			return nil, invalid(errs)
		}
		a.reviewAccess(ctx, user, v.Spec.ResourceAttributes, v.Spec.NonResourceAttributes, &v.Status)
	case *authorizationv1.SubjectAccessReview:
		errs := append(validateSubject(&v.Spec), withoutMetadata(v.ObjectMeta, "must be empty")...)
		if len(errs) > 0 {
			return nil, invalid(errs)
		}
		a.reviewSubject(ctx, &v.Spec, &v.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		if errs := validateLocal(v, namespace); len(errs) > 0 {
			return nil, invalid(errs)
		}
		a.reviewSubject(ctx, &v.Spec, &v.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		if v.Spec.Namespace == "" {
			return nil, status.BadRequest("no namespace on request")
		}
		return &authorizationv1.SelfSubjectRulesReview{Status: a.reviewRules(ctx, user, v.Spec.Namespace)}, nil
	}
	return review, nil
}

// invalid names no kind, as kube-apiserver's refusals of reviews.
func invalid(errs field.ErrorList) error {
	return status.Invalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

// withoutMetadata refuses what would not be kept. Who has sent the fields is noted in reviews, too.
func withoutMetadata(meta metav1.ObjectMeta, why string) field.ErrorList {
	besideManagers := meta
	besideManagers.ManagedFields = nil
	if equality.Semantic.DeepEqual(besideManagers, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), meta, why)}
}

func validateLocal(v *authorizationv1.LocalSubjectAccessReview, namespace string) field.ErrorList {
	besideNamespace := v.ObjectMeta
	besideNamespace.Namespace = ""
	errs := validateSubject(&v.Spec)
	if len(withoutMetadata(besideNamespace, "")) > 0 {
		errs = append(errs, withoutMetadata(v.ObjectMeta, "must be empty except for namespace")...)
	}
	if attributes := v.Spec.ResourceAttributes; attributes != nil && attributes.Namespace != namespace {
		errs = append(errs, field.Invalid(specPath.Child("resourceAttributes", "namespace"), attributes.Namespace, "must match metadata.namespace"))
	}
	if path := v.Spec.NonResourceAttributes; path != nil {
		errs = append(errs, field.Invalid(specPath.Child("nonResourceAttributes"), shown(path), "disallowed on this kind of request"))
	}
	return errs
}

func validateSubject(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateQuestions(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("user"), spec.User, "at least one of user or group must be specified"))
	}
	return append(errs, validateSelectors(spec.ResourceAttributes)...)
}

// oneQuestion refuses a review that asks nothing, or two things, or with wrong selectors.
func oneQuestion(res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	return append(validateQuestions(res, path), validateSelectors(res)...)
}

func validateQuestions(res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (res == nil) != (path == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(specPath, shown(path), "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

// shown is what errors show of a path: the names of kube-apiserver's own type.
func shown(path *authorizationv1.NonResourceAttributes) any {
	if path == nil {
		return nil
	}
	return struct{ Path, Verb string }{path.Path, path.Verb}
}

func (a *Authorizer) reviewSubject(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) {
	user := auth.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if user.Extra == nil {
			user.Extra = make(map[string][]string, len(spec.Extra))
		}
		user.Extra[key] = values
	}
	a.reviewAccess(ctx, user, spec.ResourceAttributes, spec.NonResourceAttributes, status)
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
