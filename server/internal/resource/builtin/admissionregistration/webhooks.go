package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilwebhook "k8s.io/apiserver/pkg/util/webhook"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	webhookTimeout    int32 = 10
	maxWebhookTimeout int32 = 30
	webhookPort       int32 = 443
)

var webhooksPath = field.NewPath("webhooks")

func validatingWebhookRules() define.Rules[*admissionv1.ValidatingWebhookConfiguration] {
	return define.Rules[*admissionv1.ValidatingWebhookConfiguration]{
		PrepareForUpdate: func(c, old *admissionv1.ValidatingWebhookConfiguration) {
			define.CountStrictly(c, old, c.Webhooks, old.Webhooks)
		},
		Default: func(c *admissionv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				h := &c.Webhooks[i]
				defaultWebhook(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds)
				defaultClientConfig(&h.ClientConfig)
				defaultRuleScopes(h.Rules)
			}
		},
		ValidateCreate: func(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
			return append(validateValidatingWebhooks(c), validateNewName(c.Name)...)
		},
		Warnings: func(c, _ *admissionv1.ValidatingWebhookConfiguration) []string {
			var warnings []string
			for i := range c.Webhooks {
				warnings = append(warnings, unaskedWarnings(i, c.Webhooks[i].Rules)...)
			}
			return warnings
		},
		ValidateUpdate: func(c, old *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
			var before []string
			for i := range old.Webhooks {
				before = append(before, conditionsOf(old.Webhooks[i].MatchConditions)...)
			}
			return validateValidatingWebhooks(c, before...)
		},
	}
}

// validateValidatingWebhooks checks a configuration. before are the match conditions that it has had.
func validateValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration, before ...string) field.ErrorList {
	var errs field.ErrorList
	seen := newWebhooks(before)
	for i, h := range c.Webhooks {
		errs = append(errs, validateWebhook(webhooksPath.Index(i), webhook{
			h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions, h.MatchConditions,
		}, seen, nil)...)
	}
	return errs
}

func mutatingWebhookRules() define.Rules[*admissionv1.MutatingWebhookConfiguration] {
	return define.Rules[*admissionv1.MutatingWebhookConfiguration]{
		PrepareForUpdate: func(c, old *admissionv1.MutatingWebhookConfiguration) {
			define.CountStrictly(c, old, c.Webhooks, old.Webhooks)
		},
		Default: func(c *admissionv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				h := &c.Webhooks[i]
				defaultWebhook(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds)
				define.SetDefaultPtr(&h.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
				defaultClientConfig(&h.ClientConfig)
				defaultRuleScopes(h.Rules)
			}
		},
		ValidateCreate: func(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
			return append(validateMutatingWebhooks(c), validateNewName(c.Name)...)
		},
		Warnings: func(c, _ *admissionv1.MutatingWebhookConfiguration) []string {
			var warnings []string
			for i := range c.Webhooks {
				warnings = append(warnings, unaskedWarnings(i, c.Webhooks[i].Rules)...)
			}
			return warnings
		},
		ValidateUpdate: func(c, old *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
			var before []string
			for i := range old.Webhooks {
				before = append(before, conditionsOf(old.Webhooks[i].MatchConditions)...)
			}
			return validateMutatingWebhooks(c, before...)
		},
	}
}

// validateMutatingWebhooks checks a configuration. before are the match conditions that it has had.
func validateMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration, before ...string) field.ErrorList {
	var errs field.ErrorList
	seen := newWebhooks(before)
	for i, h := range c.Webhooks {
		reinvocation := oneOfPtr(webhooksPath.Index(i).Child("reinvocationPolicy"), h.ReinvocationPolicy,
			admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)
		errs = append(errs, validateWebhook(webhooksPath.Index(i), webhook{
			h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions, h.MatchConditions,
		}, seen, reinvocation)...)
	}
	return errs
}

// defaultWebhook completes what both kinds of webhooks have.
func defaultWebhook(failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, timeout **int32) {
	define.SetDefaultPtr(failure, admissionv1.Fail)
	define.SetDefaultPtr(match, admissionv1.Equivalent)
	define.SetDefaultPtr(namespaces, metav1.LabelSelector{})
	define.SetDefaultPtr(objects, metav1.LabelSelector{})
	define.SetDefaultPtr(timeout, webhookTimeout)
}

func defaultClientConfig(c *admissionv1.WebhookClientConfig) {
	if c.Service != nil {
		define.SetDefaultPtr(&c.Service.Port, webhookPort)
	}
}

func defaultRuleScopes(list []admissionv1.RuleWithOperations) {
	for i := range list {
		define.SetDefaultPtr(&list[i].Scope, admissionv1.AllScopes)
	}
}

// webhook is what validating and mutating webhooks have in common.
type webhook struct {
	name       string
	client     admissionv1.WebhookClientConfig
	rules      []admissionv1.RuleWithOperations
	failure    *admissionv1.FailurePolicyType
	match      *admissionv1.MatchPolicyType
	namespaces *metav1.LabelSelector
	objects    *metav1.LabelSelector
	effects    *admissionv1.SideEffectClass
	timeout    *int32
	versions   []string
	conditions []admissionv1.MatchCondition
}

// webhooks are those of a configuration that are checked already.
type webhooks struct {
	names      sets.Set[string]
	conditions *expressions
}

func newWebhooks(before []string) webhooks {
	return webhooks{names: sets.New[string](), conditions: newExpressions(false, before...)}
}

// validateWebhook checks what both kinds of webhooks have, in kube-apiserver's order. own are the
// mistakes in the fields that one kind has.
func validateWebhook(path *field.Path, h webhook, seen webhooks, own field.ErrorList) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), h.name)
	for i := range h.rules {
		errs = append(errs, validateAdmissionRule(path.Child("rules").Index(i), &h.rules[i])...)
	}
	errs = append(errs, oneOfPtr(path.Child("failurePolicy"), h.failure, admissionv1.Ignore, admissionv1.Fail)...)
	errs = append(errs, oneOfPtr(path.Child("matchPolicy"), h.match, admissionv1.Exact, admissionv1.Equivalent)...)
	if h.effects == nil {
		errs = append(errs, field.Required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	}
	errs = append(errs, oneOfPtr(path.Child("sideEffects"), h.effects, admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)...)
	if t := define.ValueOr(h.timeout, webhookTimeout); t < 1 || t > maxWebhookTimeout {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), t, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, validate.LabelSelector(path.Child("namespaceSelector"), h.namespaces)...)
	errs = append(errs, validate.LabelSelector(path.Child("objectSelector"), h.objects)...)
	errs = append(errs, own...)
	errs = append(errs, validateClientConfig(path.Child("clientConfig"), &h.client)...)
	if len(h.conditions) > 0 {
		errs = append(errs, seen.conditions.matchConditions(path.Child("matchConditions"), h.conditions)...)
	}
	errs = append(errs, validateReviewVersions(path.Child("admissionReviewVersions"), h.versions)...)
	if h.name != "" && seen.names.Has(h.name) {
		errs = append(errs, field.Duplicate(path.Child("name"), h.name))
	}
	seen.names.Insert(h.name)
	return errs
}

// oneOfPtr complains about a value that is not in the enumeration: the empty one, too, but not
// one that is left out.
func oneOfPtr[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return validate.Supported(path, *value, allowed...)
}

func validateReviewVersions(path *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of v1, v1beta1")}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range versions {
		if seen.Has(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue // what else is wrong has been said of the first one
		}
		seen.Insert(v)
		for _, message := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, message))
		}
	}
	if !seen.HasAny("v1", "v1beta1") {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

func validateClientConfig(path *field.Path, c *admissionv1.WebhookClientConfig) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return utilwebhook.ValidateWebhookURL(path.Child("url"), *c.URL, true)
	}
	return utilwebhook.ValidateWebhookService(path.Child("service"), c.Service.Name, c.Service.Namespace, c.Service.Path, define.ValueOr(c.Service.Port, webhookPort))
}

// validateResources refuses resources of a rule that others before them, or all together, imply.
func validateResources(path *field.Path, resources []string) field.ErrorList {
	var errs field.ErrorList
	before := sets.New[string]()
	plain := false // the last resource that is no subresource is not "*", as in Kubernetes
	for i, r := range resources {
		name, subresource, ok := strings.Cut(r, "/")
		if r == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		if !ok {
			plain = r != "*"
			before.Insert(r)
			continue
		}
		for _, wider := range []string{name + "/*", "*/" + subresource} {
			if before.Has(wider) {
				errs = append(errs, field.Invalid(path.Index(i), r, fmt.Sprintf("if '%s' is present, must not specify %s", wider, r)))
			}
		}
		before.Insert(r)
	}
	if before.Has("*/*") && len(resources) > 1 {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if before.Has("*") && plain {
		errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// validateAdmissionRule checks one rule that says which requests are meant.
func validateAdmissionRule(path *field.Path, r *admissionv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	operations := path.Child("operations")
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(operations, ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(operations, r.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, operation := range r.Operations {
		errs = append(errs, validate.Supported(operations.Index(i), operation,
			admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)...)
	}
	errs = append(errs, validateAnyOf(path.Child("apiGroups"), r.APIGroups, "API groups")...)
	errs = append(errs, validateAnyOf(path.Child("apiVersions"), r.APIVersions, "API versions")...)
	for i, version := range r.APIVersions {
		errs = append(errs, validate.Required(path.Child("apiVersions").Index(i), version)...)
	}
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), ""))
	}
	errs = append(errs, validateResources(path.Child("resources"), r.Resources)...)
	return append(errs, oneOfPtr(path.Child("scope"), r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
}

// validateAnyOf checks a list that is not empty, and in which "*" stands alone.
func validateAnyOf(path *field.Path, values []string, what string) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(values) > 1 && slices.Contains(values, "*"):
		return field.ErrorList{field.Invalid(path, values, "if '*' is present, must not specify other "+what)}
	}
	return nil
}
