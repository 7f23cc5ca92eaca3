package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func roleRules() define.Rules[*rbacv1.Role] {
	return define.Rules[*rbacv1.Role]{
		CompleteStored: func(r *rbacv1.Role) { define.NoEmptyList(&r.Rules) },
		Validate: func(r *rbacv1.Role) field.ErrorList {
			return append(validatePolicyRules(r.Rules, true), validateVerbs(r.Rules)...)
		},
	}
}

func clusterRoleRules() define.Rules[*rbacv1.ClusterRole] {
	return define.Rules[*rbacv1.ClusterRole]{
		CompleteStored: func(r *rbacv1.ClusterRole) { define.NoEmptyList(&r.Rules) },
		ValidateCreate: func(r *rbacv1.ClusterRole) field.ErrorList { return validateClusterRole(r, false) },
		ValidateUpdate: func(r, old *rbacv1.ClusterRole) field.ErrorList {
			return validateClusterRole(r, len(validateAggregation(old.AggregationRule, false)) > 0)
		},
	}
}

// validateClusterRole checks a role, whose selectors may have values that no label can have if
// they had such before.
func validateClusterRole(r *rbacv1.ClusterRole, lenient bool) field.ErrorList {
	errs := append(validatePolicyRules(r.Rules, false), validateAggregation(r.AggregationRule, lenient)...)
	return append(errs, validateVerbs(r.Rules)...)
}

func validateAggregation(rule *rbacv1.AggregationRule, lenient bool) field.ErrorList {
	if rule == nil {
		return nil
	}
	var errs field.ErrorList
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(rule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	options := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: lenient}
	for i := range rule.ClusterRoleSelectors {
		selector := &rule.ClusterRoleSelectors[i]
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, options, at.Index(i))...)
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), nil, "invalid label selector.")) // kube-apiserver shows no value, either
		}
	}
	return errs
}

func validatePolicyRules(list []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range list {
		at := field.NewPath("rules").Index(i)
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

// validateVerbs and validateSubjectNames are the rules that kube-apiserver has in the tags of the API's
// types. It reports what they refuse last.
func validateVerbs(list []rbacv1.PolicyRule) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range list {
		if len(rule.Verbs) == 0 {
			errs = append(errs, field.Required(field.NewPath("rules").Index(i).Child("verbs"), ""))
		}
	}
	return errs
}

func validateSubjectNames(subjects []rbacv1.Subject) field.ErrorList {
	var errs field.ErrorList
	for i, s := range subjects {
		errs = append(errs, validate.Required(field.NewPath("subjects").Index(i).Child("name"), s.Name)...)
	}
	return errs
}

func roleBindingRules() define.Rules[*rbacv1.RoleBinding] {
	return define.Rules[*rbacv1.RoleBinding]{
		Default: func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		ValidateCreate: func(b *rbacv1.RoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, nil, b.Subjects, true, "Role", "ClusterRole")
		},
		ValidateUpdate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, &old.RoleRef, b.Subjects, true, "Role", "ClusterRole")
		},
	}
}

func clusterRoleBindingRules() define.Rules[*rbacv1.ClusterRoleBinding] {
	return define.Rules[*rbacv1.ClusterRoleBinding]{
		Default: func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		ValidateCreate: func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, nil, b.Subjects, false, "ClusterRole")
		},
		ValidateUpdate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, &old.RoleRef, b.Subjects, false, "ClusterRole")
		},
	}
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	define.SetDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			define.SetDefault(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// validateBinding checks a binding; old is nil for a new one. Of a role that has changed the tags of
// the type say no more, so that a missing name is reported where kube-apiserver's code does.
func validateBinding(ref rbacv1.RoleRef, old *rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, roles ...string) field.ErrorList {
	at := field.NewPath("roleRef")
	errs := validate.Supported(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	errs = append(errs, validate.SupportedInOrder(at.Child("kind"), ref.Kind, roles...)...)
	if ref.Name != "" || old != nil {
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), ref.Name, content.IsPathSegmentName)...)
	}
	for i := range subjects {
		errs = append(errs, validateSubject(field.NewPath("subjects").Index(i), &subjects[i], namespaced)...)
	}
	if old != nil {
		errs = append(errs, validate.Unchanged(at, ref, *old)...)
		return append(errs, validateSubjectNames(subjects)...)
	}
	errs = append(errs, validateSubjectNames(subjects)...)
	return append(errs, validate.Required(at.Child("name"), ref.Name)...)
}

func validateSubject(at *field.Path, s *rbacv1.Subject, namespaced bool) field.ErrorList {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		var errs field.ErrorList
		if s.Name != "" {
			errs = validate.Invalid(at.Child("name"), s.Name, validation.IsDNS1123Subdomain(s.Name))
		}
		errs = append(errs, validate.Supported(at.Child("apiGroup"), s.APIGroup, "")...)
		if !namespaced {
			errs = append(errs, validate.Required(at.Child("namespace"), s.Namespace)...)
		}
		return errs
	case rbacv1.UserKind, rbacv1.GroupKind:
		return validate.Supported(at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)
	}
	return field.ErrorList{field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind})}
}
