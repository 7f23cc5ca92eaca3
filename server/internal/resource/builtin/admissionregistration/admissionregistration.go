// Package admissionregistration defines the configurations of admission
// webhooks and the admission policies.
package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := admissionv1.SchemeGroupVersion
	categories := []string{"api-extensions"}
	return []*resource.Resource{
		define.Resource[admissionv1.ValidatingWebhookConfiguration, admissionv1.ValidatingWebhookConfigurationList](gv, define.Kind{
			Name: "ValidatingWebhookConfiguration", Plural: "validatingwebhookconfigurations", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, validatingWebhookRules()),
		define.Resource[admissionv1.MutatingWebhookConfiguration, admissionv1.MutatingWebhookConfigurationList](gv, define.Kind{
			Name: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingWebhookRules()),
		define.Resource[admissionv1.ValidatingAdmissionPolicy, admissionv1.ValidatingAdmissionPolicyList](gv, define.Kind{
			Name: "ValidatingAdmissionPolicy", Plural: "validatingadmissionpolicies", Categories: categories, Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, ConditionalOnly: true,
		}, validatingPolicyRules()),
		define.Resource[admissionv1.ValidatingAdmissionPolicyBinding, admissionv1.ValidatingAdmissionPolicyBindingList](gv, define.Kind{
			Name: "ValidatingAdmissionPolicyBinding", Plural: "validatingadmissionpolicybindings", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, validatingPolicyBindingRules()),
		define.Resource[admissionv1.MutatingAdmissionPolicy, admissionv1.MutatingAdmissionPolicyList](gv, define.Kind{
			Name: "MutatingAdmissionPolicy", Plural: "mutatingadmissionpolicies", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingPolicyRules()),
		define.Resource[admissionv1.MutatingAdmissionPolicyBinding, admissionv1.MutatingAdmissionPolicyBindingList](gv, define.Kind{
			Name: "MutatingAdmissionPolicyBinding", Plural: "mutatingadmissionpolicybindings", Categories: categories, Cluster: true, ConditionalOnly: true,
		}, mutatingPolicyBindingRules()),
	}
}
