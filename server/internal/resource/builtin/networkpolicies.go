package builtin

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func networkPolicyRules() rules[*networkingv1.NetworkPolicy] {
	return rules[*networkingv1.NetworkPolicy]{
		Default:  defaultNetworkPolicy,
		Validate: validateNetworkPolicy,
	}
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	for i := range p.Spec.Ingress {
		defaultPolicyPorts(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		defaultPolicyPorts(p.Spec.Egress[i].Ports)
	}
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

func defaultPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		setDefaultPtr(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func validateNetworkPolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	errs := labelSelector(specPath.Child("podSelector"), &p.Spec.PodSelector)
	for i, rule := range p.Spec.Ingress {
		at := specPath.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("from"), rule.From)...)
	}
	for i, rule := range p.Spec.Egress {
		at := specPath.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("to"), rule.To)...)
	}
	for i, t := range p.Spec.PolicyTypes {
		errs = append(errs, oneOf(specPath.Child("policyTypes").Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return errs
}

func validatePolicyPorts(path *field.Path, ports []networkingv1.NetworkPolicyPort) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		at := path.Index(i)
		if p.Protocol != nil {
			errs = append(errs, protocol(at.Child("protocol"), *p.Protocol)...)
		}
		if p.Port != nil {
			errs = append(errs, portReference(at.Child("port"), *p.Port)...)
		}
		if p.EndPort == nil {
			continue
		}
		switch end := at.Child("endPort"); {
		case p.Port == nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		case p.Port.Type == intstr.String:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
		case *p.EndPort < p.Port.IntVal:
			errs = append(errs, field.Invalid(end, *p.EndPort, "must be greater than or equal to `port`"))
		default:
			errs = append(errs, portNumber(end, *p.EndPort)...)
		}
	}
	return errs
}

func validatePeers(path *field.Path, peers []networkingv1.NetworkPolicyPeer) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		at := path.Index(i)
		errs = append(errs, labelSelector(at.Child("podSelector"), peer.PodSelector)...)
		errs = append(errs, labelSelector(at.Child("namespaceSelector"), peer.NamespaceSelector)...)
		switch {
		case peer.PodSelector == nil && peer.NamespaceSelector == nil && peer.IPBlock == nil:
			errs = append(errs, field.Required(at, "must specify a peer"))
		case peer.IPBlock != nil && (peer.PodSelector != nil || peer.NamespaceSelector != nil):
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		case peer.IPBlock != nil:
			errs = append(errs, validateIPBlock(at.Child("ipBlock"), peer.IPBlock)...)
		}
	}
	return errs
}

func validateIPBlock(path *field.Path, block *networkingv1.IPBlock) field.ErrorList {
	at := path.Child("cidr")
	if block.CIDR == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if errs := validation.IsValidCIDR(at, block.CIDR); len(errs) > 0 {
		return errs
	}
	whole, wholeErr := netip.ParsePrefix(block.CIDR)
	var errs field.ErrorList
	for i, except := range block.Except {
		exceptAt := path.Child("except").Index(i)
		if bad := validation.IsValidCIDR(exceptAt, except); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		part, err := netip.ParsePrefix(except)
		if wholeErr == nil && err == nil && (!whole.Contains(part.Addr()) || part.Bits() <= whole.Bits()) {
			errs = append(errs, field.Invalid(exceptAt, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

func ipAddressRules() rules[*networkingv1.IPAddress] {
	return rules[*networkingv1.IPAddress]{
		Validate: func(a *networkingv1.IPAddress) field.ErrorList {
			at := specPath.Child("parentRef")
			if a.Spec.ParentRef == nil {
				return field.ErrorList{field.Required(at, "")}
			}
			return append(required(at.Child("resource"), a.Spec.ParentRef.Resource), required(at.Child("name"), a.Spec.ParentRef.Name)...)
		},
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			return unchanged(specPath.Child("parentRef"), a.Spec.ParentRef, old.Spec.ParentRef)
		},
	}
}

// ipAddressName is the rule for the names of IPAddresses: the address itself,
// in canonical form.
func ipAddressName(name string, _ bool) []string {
	address, err := netip.ParseAddr(name)
	if err != nil || address.Zone() != "" {
		return []string{"must be a valid IP address"}
	}
	if address.String() != name {
		return []string{"must be a canonical format IP address"}
	}
	return nil
}

func serviceCIDRRules() rules[*networkingv1.ServiceCIDR] {
	return rules[*networkingv1.ServiceCIDR]{
		Validate: func(c *networkingv1.ServiceCIDR) field.ErrorList {
			at := specPath.Child("cidrs")
			if len(c.Spec.CIDRs) == 0 {
				return field.ErrorList{field.Required(at, "at least one CIDR required")}
			}
			var errs field.ErrorList
			if n := len(c.Spec.CIDRs); n > 2 {
				errs = append(errs, field.TooMany(at, n, 2))
			}
			for i, cidr := range c.Spec.CIDRs {
				errs = append(errs, validation.IsValidCIDR(at.Index(i), cidr)...)
			}
			return errs
		},
		ValidateUpdate: func(c, old *networkingv1.ServiceCIDR) field.ErrorList {
			return unchanged(specPath.Child("cidrs"), c.Spec.CIDRs, old.Spec.CIDRs)
		},
	}
}
