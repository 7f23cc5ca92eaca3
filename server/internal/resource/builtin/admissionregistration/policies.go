package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func validatingPolicyRules() define.Rules[*admissionv1.ValidatingAdmissionPolicy] {
	return define.Rules[*admissionv1.ValidatingAdmissionPolicy]{
		Default: func(p *admissionv1.ValidatingAdmissionPolicy) {
			define.SetDefaultPtr(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			return validatePolicyMatch(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy)
		},
		ValidateCreate: func(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			return append(validatingExpressions(p, nil), validateNewName(p.Name)...)
		},
		ValidateUpdate: validatingExpressions,
		ValidateStatus: func(p, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			return validatePolicyStatus(&p.Status)
		},
	}
}

// validatePolicyStatus checks what is said of a policy's expressions, and its conditions.
func validatePolicyStatus(status *admissionv1.ValidatingAdmissionPolicyStatus) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("status")
	if status.TypeChecking != nil {
		for i, w := range status.TypeChecking.ExpressionWarnings {
			warning := at.Child("typeChecking", "expressionWarnings").Index(i)
			errs = append(errs, validate.Required(warning.Child("warning"), w.Warning)...)
			errs = append(errs, validateFieldRef(warning.Child("fieldRef"), strings.TrimSpace(w.FieldRef))...)
		}
	}
	return append(errs, metavalidation.ValidateConditions(status.Conditions, at.Child("conditions"))...)
}

func validateFieldRef(path *field.Path, ref string) field.ErrorList {
	if ref == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
		return field.ErrorList{field.Invalid(path, ref, fmt.Sprintf("invalid JSONPath: %v", err))}
	}
	return nil
}

func mutatingPolicyRules() define.Rules[*admissionv1.MutatingAdmissionPolicy] {
	return define.Rules[*admissionv1.MutatingAdmissionPolicy]{
		Default: func(p *admissionv1.MutatingAdmissionPolicy) {
			define.SetDefaultPtr(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		},
		Validate: func(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
			errs := validatePolicyMatch(p.Spec.ParamKind, p.Spec.MatchConstraints, p.Spec.FailurePolicy)
			return append(errs, validateMutableOperations(validate.SpecPath.Child("matchConstraints"), p.Spec.MatchConstraints)...)
		},
		ValidateCreate: func(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
			return append(mutatingExpressions(p, nil), validateNewName(p.Name)...)
		},
		ValidateUpdate: mutatingExpressions,
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
	at := validate.SpecPath.Child("failurePolicy")
	errs := oneOfPtr(at, failure, admissionv1.Ignore, admissionv1.Fail)
	if failure == nil {
		errs = append(errs, field.Required(at, ""))
	}
	if param != nil {
		errs = append(errs, validateParamKind(validate.SpecPath.Child("paramKind"), param)...)
	}
	at = validate.SpecPath.Child("matchConstraints")
	if match == nil {
		return append(errs, field.Required(at, ""))
	}
	errs = append(errs, validateMatch(at, match)...)
	if len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("resourceRules"), ""))
	}
	return errs
}

func validateParamKind(path *field.Path, param *admissionv1.ParamKind) field.ErrorList {
	errs := validateParamVersion(path.Child("apiVersion"), param.APIVersion)
	errs = append(errs, validate.Required(path.Child("kind"), param.Kind)...)
	if problems := validation.IsDNS1035Label(strings.ToLower(param.Kind)); param.Kind != "" && len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), param.Kind, "may have mixed case, but should otherwise match: "+strings.Join(problems, ",")))
	}
	return errs
}

// validateParamVersion says all that is wrong with a group, and with a version, in one error each.
func validateParamVersion(path *field.Path, apiVersion string) field.ErrorList {
	if apiVersion == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return field.ErrorList{field.Invalid(path, apiVersion, err.Error())}
	}
	var errs field.ErrorList
	if problems := validation.IsDNS1123Subdomain(gv.Group); gv.Group != "" && len(problems) > 0 {
		errs = append(errs, field.Invalid(path, gv.Group, strings.Join(problems, ",")))
	}
	if gv.Version == "" {
		return append(errs, field.Invalid(path, apiVersion, "version must be specified"))
	}
	if problems := validation.IsDNS1035Label(gv.Version); len(problems) > 0 {
		errs = append(errs, field.Invalid(path, gv.Version, strings.Join(problems, ",")))
	}
	return errs
}

func validateMatch(path *field.Path, match *admissionv1.MatchResources) field.ErrorList {
	errs := oneOfPtr(path.Child("matchPolicy"), match.MatchPolicy, admissionv1.Exact, admissionv1.Equivalent)
	errs = append(errs, validate.LabelSelector(path.Child("namespaceSelector"), match.NamespaceSelector)...)
	errs = append(errs, validate.LabelSelector(path.Child("objectSelector"), match.ObjectSelector)...)
	for i := range match.ResourceRules {
		errs = append(errs, validateNamedRule(path.Child("resourceRules").Index(i), &match.ResourceRules[i])...)
	}
	for i := range match.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(path.Child("excludeResourceRules").Index(i), &match.ExcludeResourceRules[i])...)
	}
	return errs
}

func validateNamedRule(path *field.Path, rule *admissionv1.NamedRuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, name := range rule.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		errs = append(errs, validate.Invalid(at, name, apipath.ValidatePathSegmentName(name, false))...)
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		names.Insert(name)
	}
	return append(errs, validateAdmissionRule(path, &rule.RuleWithOperations)...)
}

// mutableOperations are those of requests that have an object to change.
var mutableOperations = []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Connect}

// validateMutableOperations refuses the operations that a mutating policy cannot be for. As in
// Kubernetes, the error does not say which of the rules it is about.
func validateMutableOperations(path *field.Path, match *admissionv1.MatchResources) field.ErrorList {
	if match == nil {
		return nil
	}
	var errs field.ErrorList
	for _, rule := range match.ResourceRules {
		for _, operation := range rule.Operations {
			errs = append(errs, validate.Supported(path.Child("resourceRules", "operations"), operation, mutableOperations...)...)
		}
	}
	return errs
}

func validatingPolicyBindingRules() define.Rules[*admissionv1.ValidatingAdmissionPolicyBinding] {
	return define.Rules[*admissionv1.ValidatingAdmissionPolicyBinding]{
		Default: func(b *admissionv1.ValidatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) },
		ValidateCreate: func(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
			return slices.Concat(validateValidatingBinding(&b.Spec), validateNewName(b.Name), tagsOfValidatingBinding(&b.Spec))
		},
		ValidateUpdate: func(b, _ *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
			return append(validateValidatingBinding(&b.Spec), tagsOfValidatingBinding(&b.Spec)...)
		},
	}
}

var actionsPath = validate.SpecPath.Child("validationActions")

func validateValidatingBinding(spec *admissionv1.ValidatingAdmissionPolicyBindingSpec) field.ErrorList {
	errs := validatePolicyBinding(spec.PolicyName, spec.ParamRef, spec.MatchResources)
	seen := sets.New[admissionv1.ValidationAction]()
	for i, action := range spec.ValidationActions {
		errs = append(errs, validate.Supported(actionsPath.Index(i), action, admissionv1.Deny, admissionv1.Warn, admissionv1.Audit)...)
		if seen.Has(action) {
			errs = append(errs, field.Duplicate(actionsPath.Index(i), action))
		}
		seen.Insert(action)
	}
	if seen.HasAll(admissionv1.Deny, admissionv1.Warn) {
		errs = append(errs, field.Invalid(actionsPath, spec.ValidationActions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

// tagsOfValidatingBinding are the rules that kube-apiserver has in the tags of the type, and reports last.
func tagsOfValidatingBinding(spec *admissionv1.ValidatingAdmissionPolicyBindingSpec) field.ErrorList {
	errs := validate.Required(policyNamePath, spec.PolicyName)
	if len(spec.ValidationActions) == 0 {
		errs = append(errs, field.Required(actionsPath, ""))
	}
	return errs
}

func mutatingPolicyBindingRules() define.Rules[*admissionv1.MutatingAdmissionPolicyBinding] {
	return define.Rules[*admissionv1.MutatingAdmissionPolicyBinding]{
		Default:        func(b *admissionv1.MutatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) },
		ValidateCreate: func(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList { return validateNewName(b.Name) },
		Validate: func(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
			errs := validate.Required(policyNamePath, b.Spec.PolicyName)
			errs = append(errs, validatePolicyBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)...)
			return append(errs, validateMutableOperations(validate.SpecPath.Child("matchResources"), b.Spec.MatchResources)...)
		},
	}
}

var policyNamePath = validate.SpecPath.Child("policyName")

// validatePolicyBinding checks what bindings of both kinds have, but for a missing name.
func validatePolicyBinding(policy string, param *admissionv1.ParamRef, match *admissionv1.MatchResources) field.ErrorList {
	var errs field.ErrorList
	if policy != "" {
		errs = validate.Invalid(policyNamePath, policy, validation.IsDNS1123Subdomain(policy))
	}
	if param != nil {
		errs = append(errs, validateParamRef(validate.SpecPath.Child("paramRef"), param)...)
	}
	if match != nil {
		errs = append(errs, validateMatch(validate.SpecPath.Child("matchResources"), match)...)
	}
	return errs
}

func validateParamRef(path *field.Path, param *admissionv1.ParamRef) field.ErrorList {
	const exclusive = "name and selector are mutually exclusive"
	var errs field.ErrorList
	both := param.Name != "" && param.Selector != nil
	if param.Name != "" {
		errs = append(errs, validate.Invalid(path.Child("name"), param.Name, apipath.ValidatePathSegmentName(param.Name, false))...)
	}
	if both {
		errs = append(errs, field.Forbidden(path.Child("name"), exclusive))
	}
	errs = append(errs, validate.LabelSelector(path.Child("selector"), param.Selector)...)
	if both {
		errs = append(errs, field.Forbidden(path.Child("selector"), exclusive))
	}
	if param.Name == "" && param.Selector == nil {
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	return append(errs, validate.OneOfInOrder(path.Child("parameterNotFoundAction"), define.ValueOr(param.ParameterNotFoundAction, ""), admissionv1.DenyAction, admissionv1.AllowAction)...)
}
