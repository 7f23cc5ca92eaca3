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
		Default: func(c *admissionv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				h := &c.Webhooks[i]
				defaultWebhook(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds)
				defaultClientConfig(&h.ClientConfig)
				defaultRuleScopes(h.Rules)
			}
		},
		Validate: func(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
			var errs field.ErrorList
			names := sets.New[string]()
			for i, h := range c.Webhooks {
				errs = append(errs, validateWebhook(webhooksPath.Index(i), webhook{
					h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions, h.MatchConditions,
				}, names)...)
			}
			return errs
		},
	}
}

func mutatingWebhookRules() define.Rules[*admissionv1.MutatingWebhookConfiguration] {
	return define.Rules[*admissionv1.MutatingWebhookConfiguration]{
		Default: func(c *admissionv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				h := &c.Webhooks[i]
				defaultWebhook(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds)
				define.SetDefaultPtr(&h.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
				defaultClientConfig(&h.ClientConfig)
				defaultRuleScopes(h.Rules)
			}
		},
		Validate: func(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
			var errs field.ErrorList
			names := sets.New[string]()
			for i, h := range c.Webhooks {
				errs = append(errs, validateWebhook(webhooksPath.Index(i), webhook{
					h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions, h.MatchConditions,
				}, names)...)
				if p := h.ReinvocationPolicy; p != nil {
					errs = append(errs, validate.OneOf(webhooksPath.Index(i).Child("reinvocationPolicy"), *p,
						admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
				}
			}
			return errs
		},
	}
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

func validateWebhook(path *field.Path, h webhook, names sets.Set[string]) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), h.name)
	if names.Has(h.name) {
		errs = append(errs, field.Duplicate(path.Child("name"), h.name))
	}
	names.Insert(h.name)
	for i := range h.rules {
		errs = append(errs, validateAdmissionRule(path.Child("rules").Index(i), &h.rules[i])...)
	}
	errs = append(errs, validate.OneOf(path.Child("failurePolicy"), define.ValueOr(h.failure, ""), admissionv1.Ignore, admissionv1.Fail)...)
	errs = append(errs, validate.OneOf(path.Child("matchPolicy"), define.ValueOr(h.match, ""), admissionv1.Exact, admissionv1.Equivalent)...)
	errs = append(errs, validate.OneOf(path.Child("sideEffects"), define.ValueOr(h.effects, ""), admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)...)
	errs = append(errs, validate.LabelSelector(path.Child("namespaceSelector"), h.namespaces)...)
	errs = append(errs, validate.LabelSelector(path.Child("objectSelector"), h.objects)...)
	if t := define.ValueOr(h.timeout, webhookTimeout); t < 1 || t > maxWebhookTimeout {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), t, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, validateReviewVersions(path.Child("admissionReviewVersions"), h.versions)...)
	if len(h.conditions) > 0 {
		errs = append(errs, newExpressions(false).matchConditions(path.Child("matchConditions"), h.conditions)...)
	}
	return append(errs, validateClientConfig(path.Child("clientConfig"), &h.client)...)
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

// validateResources refuses resources of a rule that others of its resources imply.
func validateResources(path *field.Path, resources []string) field.ErrorList {
	var errs field.ErrorList
	all := sets.New(resources...)
	whole := slices.ContainsFunc(resources, func(r string) bool { return r != "*" && !strings.Contains(r, "/") })
	for i, r := range resources {
		name, subresource, ok := strings.Cut(r, "/")
		switch {
		case r == "":
			errs = append(errs, field.Required(path.Index(i), ""))
		case r == "*/*" && len(resources) > 1:
			errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
		case ok && name != "*" && subresource != "*" && all.Has(name+"/*"):
			errs = append(errs, field.Invalid(path.Index(i), r, fmt.Sprintf("if '%s/*' is present, must not specify %s", name, r)))
		case ok && name != "*" && all.Has("*/"+subresource):
			errs = append(errs, field.Invalid(path.Index(i), r, fmt.Sprintf("if '*/%s' is present, must not specify %s", subresource, r)))
		case !ok && r == "*" && whole:
			errs = append(errs, field.Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
		}
	}
	return errs
}

// validateAdmissionRule checks one rule that says which requests are meant.
func validateAdmissionRule(path *field.Path, r *admissionv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), ""))
	}
	for i, operation := range r.Operations {
		errs = append(errs, validate.OneOf(path.Child("operations").Index(i), operation,
			admissionv1.OperationAll, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)...)
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(path.Child("operations"), r.Operations, "if '*' is present, must not specify other operations"))
	}
	for _, part := range []struct {
		name   string
		values []string
	}{{"apiGroups", r.APIGroups}, {"apiVersions", r.APIVersions}, {"resources", r.Resources}} {
		at := path.Child(part.name)
		if len(part.values) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		if part.name != "resources" && len(part.values) > 1 && slices.Contains(part.values, "*") {
			errs = append(errs, field.Invalid(at, part.values, "if '*' is present, must not specify other values"))
		}
	}
	for i, version := range r.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateResources(path.Child("resources"), r.Resources)...)
	if r.Scope != nil {
		errs = append(errs, validate.OneOf(path.Child("scope"), *r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
	}
	return errs
}
