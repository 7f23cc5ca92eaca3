package builtin

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func networkingResources() []*resource.Resource {
	gv := networkingv1.SchemeGroupVersion
	return []*resource.Resource{
		define[networkingv1.Ingress, networkingv1.IngressList](gv, kind{
			Name: "Ingress", Plural: "ingresses", ShortNames: []string{"ing"}, Path: "ingress", Status: true,
		}, ingressRules()),
		define[networkingv1.IngressClass, networkingv1.IngressClassList](gv, kind{
			Name: "IngressClass", Plural: "ingressclasses", Cluster: true,
		}, ingressClassRules()),
		define[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](gv, kind{
			Name: "NetworkPolicy", Plural: "networkpolicies", ShortNames: []string{"netpol"},
		}, networkPolicyRules()),
		define[networkingv1.IPAddress, networkingv1.IPAddressList](gv, kind{
			Name: "IPAddress", Plural: "ipaddresses", NameRule: ipAddressName, ShortNames: []string{"ip"}, Cluster: true,
		}, ipAddressRules()),
		define[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](gv, kind{
			Name: "ServiceCIDR", Plural: "servicecidrs", Cluster: true, Status: true,
		}, serviceCIDRRules()),
	}
}
