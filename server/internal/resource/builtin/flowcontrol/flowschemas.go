package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	defaultPrecedence int32 = 1000
	maxPrecedence     int32 = 10000
)

// knownVerbs are the verbs that a rule may name, in the order in which a refusal lists them.
var knownVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

func flowSchemaRules() define.Rules[*flowcontrolv1.FlowSchema] {
	return define.Rules[*flowcontrolv1.FlowSchema]{
		CompleteStored: func(s *flowcontrolv1.FlowSchema) {
			for i := range s.Spec.Rules {
				for j := range s.Spec.Rules[i].ResourceRules {
					define.NoEmptyList(&s.Spec.Rules[i].ResourceRules[j].Namespaces)
				}
			}
		},
		Default:  func(s *flowcontrolv1.FlowSchema) { define.SetDefault(&s.Spec.MatchingPrecedence, defaultPrecedence) },
		Validate: validateFlowSchema,
		ValidateStatus: func(s, _ *flowcontrolv1.FlowSchema) field.ErrorList {
			return validateConditions(s.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) string { return string(c.Type) })
		},
	}
}

func validateFlowSchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	errs := validatePrecedence(validate.SpecPath.Child("matchingPrecedence"), s)
	if m := s.Spec.DistinguisherMethod; m != nil {
		methods := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}
		if !slices.Contains(methods, m.Type) {
			// kube-apiserver shows the whole method, not its type.
			errs = append(errs, field.NotSupported(validate.SpecPath.Child("distinguisherMethod", "type"), m, methods))
		}
	}
	level := validate.SpecPath.Child("priorityLevelConfiguration", "name")
	if name := s.Spec.PriorityLevelConfiguration.Name; name == "" {
		errs = append(errs, field.Required(level, "must reference a priority level"))
	} else {
		errs = append(errs, validate.Invalid(level, name, apivalidation.NameIsDNSSubdomain(name, false))...)
	}
	for i := range s.Spec.Rules {
		errs = append(errs, validateRule(validate.SpecPath.Child("rules").Index(i), &s.Spec.Rules[i])...)
	}
	return append(errs, mandatorySchema(s)...)
}

func validatePrecedence(path *field.Path, s *flowcontrolv1.FlowSchema) field.ErrorList {
	switch p := s.Spec.MatchingPrecedence; {
	case p <= 0:
		return field.ErrorList{field.Invalid(path, p, "must be a positive value")}
	case p > maxPrecedence:
		return field.ErrorList{field.Invalid(path, p, fmt.Sprintf("must not be greater than %d", maxPrecedence))}
	case p == 1 && s.Name != flowcontrolv1.FlowSchemaNameExempt:
		return field.ErrorList{field.Invalid(path, p, "only the schema named 'exempt' may have matchingPrecedence 1")}
	}
	return nil
}

func validateRule(path *field.Path, rule *flowcontrolv1.PolicyRulesWithSubjects) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range rule.Subjects {
		errs = append(errs, validateSubject(path.Child("subjects").Index(i), &rule.Subjects[i])...)
	}
	if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range rule.ResourceRules {
		errs = append(errs, validateResourceRule(path.Child("resourceRules").Index(i), &rule.ResourceRules[i])...)
	}
	for i := range rule.NonResourceRules {
		errs = append(errs, validateNonResourceRule(path.Child("nonResourceRules").Index(i), &rule.NonResourceRules[i])...)
	}
	return errs
}

func validateResourceRule(path *field.Path, rule *flowcontrolv1.ResourcePolicyRule) field.ErrorList {
	errs := validateVerbs(path.Child("verbs"), rule.Verbs)
	errs = append(errs, validateAlone(path.Child("apiGroups"), rule.APIGroups, "resource rules must supply at least one api group", "api groups")...)
	errs = append(errs, validateAlone(path.Child("resources"), rule.Resources, "resource rules must supply at least one resource", "resources")...)
	namespaces := path.Child("namespaces")
	switch {
	case len(rule.Namespaces) == 0 && !rule.ClusterScope:
		errs = append(errs, field.Required(namespaces, "resource rules that are not cluster scoped must supply at least one namespace"))
	case slices.Contains(rule.Namespaces, flowcontrolv1.NamespaceEvery):
		errs = append(errs, validateAlone(namespaces, rule.Namespaces, "", "namespaces")...)
	default:
		for i, namespace := range rule.Namespaces {
			for _, message := range apivalidation.ValidateNamespaceName(namespace, false) {
				errs = append(errs, field.Invalid(namespaces.Index(i), namespace, "each member of this list must be '*' or a DNS-1123 label; "+message))
			}
		}
	}
	return errs
}

func validateNonResourceRule(path *field.Path, rule *flowcontrolv1.NonResourcePolicyRule) field.ErrorList {
	errs := validateVerbs(path.Child("verbs"), rule.Verbs)
	urls := path.Child("nonResourceURLs")
	errs = append(errs, validateAlone(urls, rule.NonResourceURLs, "nonResourceURLs must contain at least one value", "non-resource URLs")...)
	if slices.Contains(rule.NonResourceURLs, flowcontrolv1.NonResourceAll) {
		return errs
	}
	for i, url := range rule.NonResourceURLs {
		if wrong := wrongURL(url); wrong != "" {
			errs = append(errs, field.Invalid(urls.Index(i), url, wrong))
		}
	}
	return errs
}

func validateVerbs(path *field.Path, verbs []string) field.ErrorList {
	errs := validateAlone(path, verbs, "verbs must contain at least one value", "verbs")
	unknown := func(verb string) bool { return !slices.Contains(knownVerbs, verb) }
	if len(errs) == 0 && !slices.Contains(verbs, flowcontrolv1.VerbAll) && slices.ContainsFunc(verbs, unknown) {
		errs = append(errs, field.NotSupported(path, verbs, knownVerbs)) // all of them, as kube-apiserver has it
	}
	return errs
}

// validateAlone checks a list that is not empty, and in which '*' stands alone: beside it,
// there must not be other values, which what names.
func validateAlone(path *field.Path, list []string, empty, what string) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, empty)}
	case len(list) > 1 && slices.Contains(list, "*"):
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

// wrongURL says what is wrong with the path of a request for no resource, whose last part may be '*'.
func wrongURL(url string) string {
	stars := strings.Count(url, "*")
	switch {
	case url == "":
		return "must not be empty"
	case url == "/":
		return ""
	case !strings.HasPrefix(url, "/"):
		return "must start with slash"
	case strings.Contains(url, " "):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case stars > 1, stars == 1 && !strings.HasSuffix(url, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// validateConditions checks the conditions of a status, each of which has a type of its own.
func validateConditions[C any](conditions []C, typeOf func(C) string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range conditions {
		at, kind := field.NewPath("status", "conditions").Index(i).Child("type"), typeOf(c)
		if seen[kind] {
			errs = append(errs, field.Duplicate(at, kind))
		}
		seen[kind] = true
		errs = append(errs, validate.Required(at, kind)...)
	}
	return errs
}
