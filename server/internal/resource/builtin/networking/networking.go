// Package networking defines the kinds of networking.k8s.io: Ingresses,
// NetworkPolicies, and the addresses of Services.
package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := networkingv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[networkingv1.Ingress, networkingv1.IngressList](gv, define.Kind{
			Name: "Ingress", Plural: "ingresses", ShortNames: []string{"ing"}, Path: "ingress", Status: true,
		}, ingressRules()),
		define.Resource[networkingv1.IngressClass, networkingv1.IngressClassList](gv, define.Kind{
			Name: "IngressClass", Plural: "ingressclasses", Cluster: true,
		}, ingressClassRules()),
		define.Resource[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](gv, define.Kind{
			Name: "NetworkPolicy", Plural: "networkpolicies", NameRuleForNew: true, ShortNames: []string{"netpol"},
		}, networkPolicyRules()),
		define.Resource[networkingv1.IPAddress, networkingv1.IPAddressList](gv, define.Kind{
			Name: "IPAddress", Plural: "ipaddresses", NamesBeforeFinalizers: true, NameRule: ipAddressName, WholeGenerateName: true, ShortNames: []string{"ip"}, Cluster: true, NoGeneration: true,
		}, ipAddressRules()),
		define.Resource[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](gv, define.Kind{
			Name: "ServiceCIDR", Plural: "servicecidrs", NameRuleForNew: true, Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true,
		}, serviceCIDRRules()),
	}
}
