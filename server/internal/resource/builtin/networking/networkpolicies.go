package networking

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func networkPolicyRules() define.Rules[*networkingv1.NetworkPolicy] {
	return define.Rules[*networkingv1.NetworkPolicy]{
		Default: defaultNetworkPolicy,
		PrepareForUpdate: func(p, old *networkingv1.NetworkPolicy) {
			define.CountStrictly(p, old, p.Spec, old.Spec)
		},
		ValidateCreate: func(p *networkingv1.NetworkPolicy) field.ErrorList { return validateNetworkPolicy(p, policyOptions{}) },
		ValidateUpdate: func(p, old *networkingv1.NetworkPolicy) field.ErrorList {
			return validateNetworkPolicy(p, optionsOf(old))
		},
		Warnings: networkPolicyWarnings,
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

// policyOptions are what a policy may have because it had it before.
type policyOptions struct {
	selectors metavalidation.LabelSelectorValidationOptions
	blocks    sets.Set[string]
}

func optionsOf(old *networkingv1.NetworkPolicy) policyOptions {
	options := policyOptions{blocks: sets.New[string]()}
	options.selectors.AllowInvalidLabelValueInSelector = len(validate.LabelSelector(nil, &old.Spec.PodSelector)) > 0
	forBlocks(old, func(_ *field.Path, block *networkingv1.IPBlock) {
		options.blocks.Insert(block.CIDR)
		options.blocks.Insert(block.Except...)
	})
	return options
}

// forBlocks calls f with each block of addresses and its path.
func forBlocks(p *networkingv1.NetworkPolicy, f func(*field.Path, *networkingv1.IPBlock)) {
	of := func(path *field.Path, peers []networkingv1.NetworkPolicyPeer) {
		for i := range peers {
			if block := peers[i].IPBlock; block != nil {
				f(path.Index(i).Child("ipBlock"), block)
			}
		}
	}
	for i := range p.Spec.Ingress {
		of(validate.SpecPath.Child("ingress").Index(i).Child("from"), p.Spec.Ingress[i].From)
	}
	for i := range p.Spec.Egress {
		of(validate.SpecPath.Child("egress").Index(i).Child("to"), p.Spec.Egress[i].To)
	}
}

// networkPolicyWarnings are about blocks that readers may understand differently.
func networkPolicyWarnings(p, _ *networkingv1.NetworkPolicy) []string {
	var warnings []string
	forBlocks(p, func(path *field.Path, block *networkingv1.IPBlock) {
		warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("cidr"), block.CIDR)...)
		for i, except := range block.Except {
			warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("except").Index(i), except)...)
		}
	})
	return warnings
}

func validateNetworkPolicy(p *networkingv1.NetworkPolicy, options policyOptions) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(&p.Spec.PodSelector, options.selectors, validate.SpecPath.Child("podSelector"))
	for i, rule := range p.Spec.Ingress {
		at := validate.SpecPath.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("from"), rule.From, options)...)
	}
	for i, rule := range p.Spec.Egress {
		at := validate.SpecPath.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(at.Child("ports"), rule.Ports)...)
		errs = append(errs, validatePeers(at.Child("to"), rule.To, options)...)
	}
	types := validate.SpecPath.Child("policyTypes")
	if len(p.Spec.PolicyTypes) > 2 {
		errs = append(errs, field.Invalid(types, p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	} else {
		for i, t := range p.Spec.PolicyTypes {
			errs = append(errs, validate.SupportedInOrder(types.Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
		}
	}
	// kube-apiserver has this rule in the tags of the type, and reports it last.
	forBlocks(p, func(path *field.Path, block *networkingv1.IPBlock) {
		errs = append(errs, validate.Required(path.Child("cidr"), block.CIDR)...)
	})
	return errs
}

func validatePolicyPorts(path *field.Path, ports []networkingv1.NetworkPolicyPort) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		at := path.Index(i)
		if p.Protocol != nil {
			errs = append(errs, validate.SupportedInOrder(at.Child("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		}
		port, end := at.Child("port"), at.Child("endPort")
		switch {
		case p.Port == nil && p.EndPort != nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		case p.Port == nil:
		case p.Port.Type == intstr.String:
			if p.EndPort != nil {
				errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
			}
			errs = append(errs, validate.PortReference(port, *p.Port)...)
		default:
			errs = append(errs, validate.PortReference(port, *p.Port)...)
			errs = append(errs, validateEndPort(end, p.Port.IntVal, p.EndPort)...)
		}
	}
	return errs
}

func validateEndPort(path *field.Path, first int32, last *int32) field.ErrorList {
	if last == nil {
		return nil
	}
	var errs field.ErrorList
	if *last < first {
		errs = append(errs, field.Invalid(path, *last, "must be greater than or equal to `port`"))
	}
	return append(errs, validate.PortNumber(path, *last)...)
}

func validatePeers(path *field.Path, peers []networkingv1.NetworkPolicyPeer, options policyOptions) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		at := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelSelector(peer.PodSelector, options.selectors, at.Child("podSelector"))...)
		errs = append(errs, metavalidation.ValidateLabelSelector(peer.NamespaceSelector, options.selectors, at.Child("namespaceSelector"))...)
		if peer.IPBlock != nil {
			errs = append(errs, validateIPBlock(at.Child("ipBlock"), peer.IPBlock, options.blocks)...)
		}
		selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case !selects && peer.IPBlock == nil:
			errs = append(errs, field.Required(at, "must specify a peer"))
		case selects && peer.IPBlock != nil:
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		}
	}
	return errs
}

// validateIPBlock checks a block, but for what the policy had before.
func validateIPBlock(path *field.Path, block *networkingv1.IPBlock, before sets.Set[string]) field.ErrorList {
	if block.CIDR == "" {
		return nil // validateNetworkPolicy complains
	}
	errs := blockOrBefore(path.Child("cidr"), block.CIDR, before)
	_, whole, err := netutils.ParseCIDRSloppy(block.CIDR)
	if err != nil {
		return errs
	}
	size, _ := whole.Mask.Size()
	for i, except := range block.Except {
		at := path.Child("except").Index(i)
		errs = append(errs, blockOrBefore(at, except, before)...)
		_, part, err := netutils.ParseCIDRSloppy(except)
		if err != nil {
			continue
		}
		if partSize, _ := part.Mask.Size(); partSize <= size || !whole.Contains(part.IP) {
			errs = append(errs, field.Invalid(at, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// blockOrBefore checks a block in any form, unless the policy had it before.
func blockOrBefore(path *field.Path, block string, before sets.Set[string]) field.ErrorList {
	if before.Has(block) {
		return nil
	}
	return validate.CIDR(path, block)
}
