package networking

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func networkPolicyRules() define.Rules[*networkingv1.NetworkPolicy] {
	return define.Rules[*networkingv1.NetworkPolicy]{
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
		define.SetDefaultPtr(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func validateNetworkPolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	errs := validate.LabelSelector(validate.SpecPath.Child("podSelector"), &p.Spec.PodSelector)
	for i, rule := range p.Spec.Ingress {
		at := validate.SpecPath.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("from"), rule.From)...)
	}
	for i, rule := range p.Spec.Egress {
		at := validate.SpecPath.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("to"), rule.To)...)
	}
	if len(p.Spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(validate.SpecPath.Child("policyTypes"), p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range p.Spec.PolicyTypes {
		errs = append(errs, validate.OneOf(validate.SpecPath.Child("policyTypes").Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return errs
}

func validatePolicyPorts(path *field.Path, ports []networkingv1.NetworkPolicyPort) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		at := path.Index(i)
		if p.Protocol != nil {
			errs = append(errs, podspec.Protocol(at.Child("protocol"), *p.Protocol)...)
		}
		if p.Port != nil {
			errs = append(errs, validate.PortReference(at.Child("port"), *p.Port)...)
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
			errs = append(errs, validate.PortNumber(end, *p.EndPort)...)
		}
	}
	return errs
}

func validatePeers(path *field.Path, peers []networkingv1.NetworkPolicyPeer) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		at := path.Index(i)
		errs = append(errs, validate.LabelSelector(at.Child("podSelector"), peer.PodSelector)...)
		errs = append(errs, validate.LabelSelector(at.Child("namespaceSelector"), peer.NamespaceSelector)...)
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
	if errs := validate.CIDR(at, block.CIDR); len(errs) > 0 {
		return errs
	}
	whole, wholeErr := netip.ParsePrefix(block.CIDR)
	var errs field.ErrorList
	for i, except := range block.Except {
		exceptAt := path.Child("except").Index(i)
		if bad := validate.CIDR(exceptAt, except); len(bad) > 0 {
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
