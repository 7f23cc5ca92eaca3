package admissionregistration

import (
	"net/url"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
					h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions,
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
					h.Name, h.ClientConfig, h.Rules, h.FailurePolicy, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector, h.SideEffects, h.TimeoutSeconds, h.AdmissionReviewVersions,
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
	at := path.Child("admissionReviewVersions")
	if len(h.versions) == 0 {
		errs = append(errs, field.Required(at, "must specify one of v1, v1beta1"))
	} else if !slices.Contains(h.versions, "v1") && !slices.Contains(h.versions, "v1beta1") {
		errs = append(errs, field.Invalid(at, h.versions, "must include at least one of v1, v1beta1"))
	}
	return append(errs, validateClientConfig(path.Child("clientConfig"), &h.client)...)
}

func validateClientConfig(path *field.Path, c *admissionv1.WebhookClientConfig) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return field.ErrorList{field.Invalid(path.Child("url"), *c.URL, "must be an https URL with a host: https://{host}[:{port}]/{path}")}
		}
		return nil
	}
	at := path.Child("service")
	errs := validate.Required(at.Child("name"), c.Service.Name)
	errs = append(errs, validate.Required(at.Child("namespace"), c.Service.Namespace)...)
	return append(errs, validate.PortNumber(at.Child("port"), define.ValueOr(c.Service.Port, webhookPort))...)
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
	for name, values := range map[string][]string{"apiGroups": r.APIGroups, "apiVersions": r.APIVersions, "resources": r.Resources} {
		at := path.Child(name)
		if len(values) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		if len(values) > 1 && slices.Contains(values, "*") {
			errs = append(errs, field.Invalid(at, values, "if '*' is present, must not specify other values"))
		}
	}
	if r.Scope != nil {
		errs = append(errs, validate.OneOf(path.Child("scope"), *r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
	}
	return errs
}
