package columns

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func admissionregistrationGroup(all layouts) {
	gv := admissionv1.SchemeGroupVersion
	all.add(gv, "MutatingAdmissionPolicy", mutatingPolicies())
	all.add(gv, "MutatingAdmissionPolicyBinding", mutatingPolicyBindings())
	all.add(gv, "MutatingWebhookConfiguration", mutatingWebhooks())
	all.add(gv, "ValidatingAdmissionPolicy", validatingPolicies())
	all.add(gv, "ValidatingAdmissionPolicyBinding", validatingPolicyBindings())
	all.add(gv, "ValidatingWebhookConfiguration", validatingWebhooks())
}

var (
	webhookColumns = []metav1.TableColumnDefinition{
		nameColumn, integer("Webhooks", "The number of webhooks in the configuration."), ageColumn,
	}
	paramKind            = text("ParamKind", "The kind of the policy's parameters.")
	policyBindingColumns = []metav1.TableColumnDefinition{
		nameColumn,
		text("PolicyName", "The policy that is bound."),
		text("ParamRef", "The object with the policy's parameters."),
		ageColumn,
	}
)

func mutatingWebhooks() layout {
	return table(func(c *admissionv1.MutatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), since(c.CreationTimestamp, now)}
	}, webhookColumns...)
}

func validatingWebhooks() layout {
	return table(func(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), since(c.CreationTimestamp, now)}
	}, webhookColumns...)
}

func validatingPolicies() layout {
	return table(func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Validations)), paramKindName(p.Spec.ParamKind), since(p.CreationTimestamp, now)}
	}, nameColumn, integer("Validations", "The number of the policy's rules."), paramKind, ageColumn)
}

func mutatingPolicies() layout {
	return table(func(p *admissionv1.MutatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Mutations)), paramKindName(p.Spec.ParamKind), since(p.CreationTimestamp, now)}
	}, nameColumn, integer("Mutations", "The number of the policy's rules."), paramKind, ageColumn)
}

func validatingPolicyBindings() layout {
	return table(func(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramName(b.Spec.ParamRef), since(b.CreationTimestamp, now)}
	}, policyBindingColumns...)
}

func mutatingPolicyBindings() layout {
	return table(func(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramName(b.Spec.ParamRef), since(b.CreationTimestamp, now)}
	}, policyBindingColumns...)
}

func paramKindName(kind *admissionv1.ParamKind) string {
	if kind == nil {
		return unset
	}
	return kind.APIVersion + "/" + kind.Kind
}

// paramName shows a star where there is no namespace: the reference alone does
// not say whether the parameters' kind has namespaces.
func paramName(ref *admissionv1.ParamRef) string {
	switch {
	case ref == nil:
		return unset
	case ref.Name != "":
		return or(ref.Namespace, "*") + "/" + ref.Name
	case ref.Selector != nil:
		return metav1.FormatLabelSelector(ref.Selector)
	}
	return unset
}
