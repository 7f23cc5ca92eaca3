package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// The expressions of admission policies are not compiled here: who evaluates
// them reports their errors in the status.

func validatingPolicyRules() define.Rules[*admissionv1.ValidatingAdmissionPolicy] {
	return define.Rules[*admissionv1.ValidatingAdmissionPolicy]{
		Default: func(p *admissionv1.ValidatingAdmissionPolicy) {
			define.SetDefaultPtr(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			errs := validatePolicyMatch(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy)
			if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
				errs = append(errs, field.Required(validate.SpecPath.Child("validations"), "validations or auditAnnotations must be specified"))
			}
			for i, v := range p.Spec.Validations {
				errs = append(errs, validate.Required(validate.SpecPath.Child("validations").Index(i).Child("expression"), v.Expression)...)
			}
			return append(errs, validateVariables(p.Spec.Variables)...)
		},
	}
}

func mutatingPolicyRules() define.Rules[*admissionv1.MutatingAdmissionPolicy] {
	return define.Rules[*admissionv1.MutatingAdmissionPolicy]{
		Default: func(p *admissionv1.MutatingAdmissionPolicy) {
			define.SetDefaultPtr(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
			errs := validatePolicyMatch(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy)
			if len(p.Spec.Mutations) == 0 {
				errs = append(errs, field.Required(validate.SpecPath.Child("mutations"), "mutations must contain at least one item"))
			}
			errs = append(errs, validate.OneOf(validate.SpecPath.Child("reinvocationPolicy"), p.Spec.ReinvocationPolicy,
				admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
			return append(errs, validateVariables(p.Spec.Variables)...)
		},
	}
}

func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	define.SetDefaultPtr(&m.MatchPolicy, admissionv1.Equivalent)
	define.SetDefaultPtr(&m.NamespaceSelector, metav1.LabelSelector{})
	define.SetDefaultPtr(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		define.SetDefaultPtr(&m.ResourceRules[i].Scope, admissionv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		define.SetDefaultPtr(&m.ExcludeResourceRules[i].Scope, admissionv1.AllScopes)
	}
}

func validatePolicyMatch(param *admissionv1.ParamKind, match *admissionv1.MatchResources, failure *admissionv1.FailurePolicyType) field.ErrorList {
	errs := validate.OneOf(validate.SpecPath.Child("failurePolicy"), define.ValueOr(failure, ""), admissionv1.Ignore, admissionv1.Fail)
	if param != nil {
		errs = append(errs, validate.Required(validate.SpecPath.Child("paramKind", "apiVersion"), param.APIVersion)...)
		errs = append(errs, validate.Required(validate.SpecPath.Child("paramKind", "kind"), param.Kind)...)
	}
	at := validate.SpecPath.Child("matchConstraints")
	if match == nil {
		return append(errs, field.Required(at, ""))
	}
	if len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("resourceRules"), ""))
	}
	return append(errs, validateMatch(at, match)...)
}

func validateMatch(path *field.Path, match *admissionv1.MatchResources) field.ErrorList {
	errs := validate.LabelSelector(path.Child("namespaceSelector"), match.NamespaceSelector)
	errs = append(errs, validate.LabelSelector(path.Child("objectSelector"), match.ObjectSelector)...)
	for i := range match.ResourceRules {
		errs = append(errs, validateAdmissionRule(path.Child("resourceRules").Index(i), &match.ResourceRules[i].RuleWithOperations)...)
	}
	for i := range match.ExcludeResourceRules {
		errs = append(errs, validateAdmissionRule(path.Child("excludeResourceRules").Index(i), &match.ExcludeResourceRules[i].RuleWithOperations)...)
	}
	return errs
}

func validateVariables(variables []admissionv1.Variable) field.ErrorList {
	var errs field.ErrorList
	for i, v := range variables {
		at := validate.SpecPath.Child("variables").Index(i)
		errs = append(errs, validate.Required(at.Child("name"), v.Name)...)
		errs = append(errs, validate.Required(at.Child("expression"), v.Expression)...)
	}
	return errs
}

func validatingPolicyBindingRules() define.Rules[*admissionv1.ValidatingAdmissionPolicyBinding] {
	return define.Rules[*admissionv1.ValidatingAdmissionPolicyBinding]{
		Default: func(b *admissionv1.ValidatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) },
		Validate: func(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
			errs := validatePolicyBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
			at := validate.SpecPath.Child("validationActions")
			if len(b.Spec.ValidationActions) == 0 {
				errs = append(errs, field.Required(at, "at least one validation action is required"))
			}
			seen := sets.New[admissionv1.ValidationAction]()
			for i, action := range b.Spec.ValidationActions {
				errs = append(errs, validate.OneOf(at.Index(i), action, admissionv1.Deny, admissionv1.Warn, admissionv1.Audit)...)
				if seen.Has(action) {
					errs = append(errs, field.Duplicate(at.Index(i), action))
				}
				seen.Insert(action)
			}
			if seen.HasAll(admissionv1.Deny, admissionv1.Warn) {
				errs = append(errs, field.Invalid(at, b.Spec.ValidationActions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
			}
			return errs
		},
	}
}

func mutatingPolicyBindingRules() define.Rules[*admissionv1.MutatingAdmissionPolicyBinding] {
	return define.Rules[*admissionv1.MutatingAdmissionPolicyBinding]{
		Default: func(b *admissionv1.MutatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) },
		Validate: func(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
			return validatePolicyBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
		},
	}
}

func validatePolicyBinding(policy string, param *admissionv1.ParamRef, match *admissionv1.MatchResources) field.ErrorList {
	errs := validate.Required(validate.SpecPath.Child("policyName"), policy)
	if param != nil {
		at := validate.SpecPath.Child("paramRef")
		if (param.Name == "") == (param.Selector == nil) {
			errs = append(errs, field.Required(at, "one of name or selector must be specified"))
		}
		errs = append(errs, validate.OneOf(at.Child("parameterNotFoundAction"), define.ValueOr(param.ParameterNotFoundAction, ""), admissionv1.AllowAction, admissionv1.DenyAction)...)
	}
	if match != nil {
		errs = append(errs, validateMatch(validate.SpecPath.Child("matchResources"), match)...)
	}
	return errs
}
