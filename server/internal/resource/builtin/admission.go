package builtin

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func admissionResources() []*resource.Resource {
	gv := admissionv1.SchemeGroupVersion
	categories := []string{"api-extensions"}
	return []*resource.Resource{
		define[admissionv1.ValidatingWebhookConfiguration, admissionv1.ValidatingWebhookConfigurationList](gv, kind{
			Name: "ValidatingWebhookConfiguration", Plural: "validatingwebhookconfigurations", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, validatingWebhookRules()),
		define[admissionv1.MutatingWebhookConfiguration, admissionv1.MutatingWebhookConfigurationList](gv, kind{
			Name: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingWebhookRules()),
		define[admissionv1.ValidatingAdmissionPolicy, admissionv1.ValidatingAdmissionPolicyList](gv, kind{
			Name: "ValidatingAdmissionPolicy", Plural: "validatingadmissionpolicies", Categories: categories, Cluster: true, Status: true, ConditionalOnly: true,
		}, validatingPolicyRules()),
		define[admissionv1.ValidatingAdmissionPolicyBinding, admissionv1.ValidatingAdmissionPolicyBindingList](gv, kind{
			Name: "ValidatingAdmissionPolicyBinding", Plural: "validatingadmissionpolicybindings", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, validatingPolicyBindingRules()),
		define[admissionv1.MutatingAdmissionPolicy, admissionv1.MutatingAdmissionPolicyList](gv, kind{
			Name: "MutatingAdmissionPolicy", Plural: "mutatingadmissionpolicies", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingPolicyRules()),
		define[admissionv1.MutatingAdmissionPolicyBinding, admissionv1.MutatingAdmissionPolicyBindingList](gv, kind{
			Name: "MutatingAdmissionPolicyBinding", Plural: "mutatingadmissionpolicybindings", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingPolicyBindingRules()),
	}
}
