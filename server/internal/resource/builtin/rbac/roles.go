package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func roleRules() define.Rules[*rbacv1.Role] {
	return define.Rules[*rbacv1.Role]{
		Validate: func(r *rbacv1.Role) field.ErrorList { return validatePolicyRules(r.Rules, true) },
	}
}

func clusterRoleRules() define.Rules[*rbacv1.ClusterRole] {
	return define.Rules[*rbacv1.ClusterRole]{
		Validate: func(r *rbacv1.ClusterRole) field.ErrorList {
			errs := validatePolicyRules(r.Rules, false)
			if r.AggregationRule == nil {
				return errs
			}
			at := field.NewPath("aggregationRule", "clusterRoleSelectors")
			if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
				errs = append(errs, field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
			}
			for i := range r.AggregationRule.ClusterRoleSelectors {
				errs = append(errs, validate.LabelSelector(at.Index(i), &r.AggregationRule.ClusterRoleSelectors[i])...)
			}
			return errs
		},
	}
}

func validatePolicyRules(list []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range list {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
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

func roleBindingRules() define.Rules[*rbacv1.RoleBinding] {
	return define.Rules[*rbacv1.RoleBinding]{
		Default: func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		Validate: func(b *rbacv1.RoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
		},
		ValidateUpdate: func(b, old *rbacv1.RoleBinding) field.ErrorList { return sameRole(b.RoleRef, old.RoleRef) },
	}
}

func clusterRoleBindingRules() define.Rules[*rbacv1.ClusterRoleBinding] {
	return define.Rules[*rbacv1.ClusterRoleBinding]{
		Default: func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
		Validate: func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, b.Subjects, false, "ClusterRole")
		},
		ValidateUpdate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList { return sameRole(b.RoleRef, old.RoleRef) },
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

func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, roles ...string) field.ErrorList {
	at := field.NewPath("roleRef")
	errs := validate.OneOf(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	errs = append(errs, validate.OneOf(at.Child("kind"), ref.Kind, roles...)...)
	errs = append(errs, validate.RequiredSyntax(at.Child("name"), ref.Name, content.IsPathSegmentName)...)
	for i, s := range subjects {
		at := field.NewPath("subjects").Index(i)
		errs = append(errs, validate.Required(at.Child("name"), s.Name)...)
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.Name != "" {
				errs = append(errs, validate.Invalid(at.Child("name"), s.Name, validation.IsDNS1123Subdomain(s.Name))...)
			}
			if s.APIGroup != "" {
				errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{""}))
			}
			if !namespaced {
				errs = append(errs, validate.Required(at.Child("namespace"), s.Namespace)...)
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			errs = append(errs, validate.OneOf(at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)...)
		default:
			errs = append(errs, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		}
	}
	return errs
}

func sameRole(now, before rbacv1.RoleRef) field.ErrorList {
	if now != before {
		return field.ErrorList{field.Invalid(field.NewPath("roleRef"), now, "cannot change roleRef")}
	}
	return nil
}
