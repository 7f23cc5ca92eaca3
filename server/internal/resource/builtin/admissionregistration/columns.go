package admissionregistration

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := admissionv1.SchemeGroupVersion
	all.Add(gv, "MutatingAdmissionPolicy", mutatingPolicyLayout())
	all.Add(gv, "MutatingAdmissionPolicyBinding", mutatingPolicyBindingLayout())
	all.Add(gv, "MutatingWebhookConfiguration", mutatingWebhookLayout())
	all.Add(gv, "ValidatingAdmissionPolicy", validatingPolicyLayout())
	all.Add(gv, "ValidatingAdmissionPolicyBinding", validatingPolicyBindingLayout())
	all.Add(gv, "ValidatingWebhookConfiguration", validatingWebhookLayout())
}

var (
	webhookColumns = []metav1.TableColumnDefinition{
		columns.NameColumn, columns.Integer("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"), columns.AgeColumn,
	}
	paramKind            = columns.Text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy")
	policyBindingColumns = []metav1.TableColumnDefinition{
		columns.NameColumn,
		columns.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
		columns.Text("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
		columns.AgeColumn,
	}
)

func mutatingWebhookLayout() columns.Layout {
	return columns.Table(func(c *admissionv1.MutatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), columns.Since(c.CreationTimestamp, now)}
	}, webhookColumns...)
}

func validatingWebhookLayout() columns.Layout {
	return columns.Table(func(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), columns.Since(c.CreationTimestamp, now)}
	}, webhookColumns...)
}

func validatingPolicyLayout() columns.Layout {
	return columns.Table(func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Validations)), paramKindName(p.Spec.ParamKind), columns.Since(p.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Integer("Validations", "Validations indicates the number of validation rules defined in this configuration"), paramKind, columns.AgeColumn)
}

func mutatingPolicyLayout() columns.Layout {
	return columns.Table(func(p *admissionv1.MutatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Mutations)), paramKindName(p.Spec.ParamKind), columns.Since(p.CreationTimestamp, now)}
	}, columns.NameColumn, columns.Integer("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"), paramKind, columns.AgeColumn)
}

func validatingPolicyBindingLayout() columns.Layout {
	return columns.Table(func(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramName(b.Spec.ParamRef), columns.Since(b.CreationTimestamp, now)}
	}, policyBindingColumns...)
}

func mutatingPolicyBindingLayout() columns.Layout {
	return columns.Table(func(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramName(b.Spec.ParamRef), columns.Since(b.CreationTimestamp, now)}
	}, policyBindingColumns...)
}

func paramKindName(kind *admissionv1.ParamKind) string {
	if kind == nil {
		return columns.Unset
	}
	return kind.APIVersion + "/" + kind.Kind
}

// paramName shows a star where there is no namespace: the reference alone does
// not say whether the parameters' kind has namespaces.
func paramName(ref *admissionv1.ParamRef) string {
	switch {
	case ref == nil:
		return columns.Unset
	case ref.Name != "":
		return columns.Or(ref.Namespace, "*") + "/" + ref.Name
	case ref.Selector != nil:
		return metav1.FormatLabelSelector(ref.Selector)
	}
	return columns.Unset
}
