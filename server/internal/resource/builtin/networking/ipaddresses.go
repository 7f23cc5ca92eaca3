package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func ipAddressRules() define.Rules[*networkingv1.IPAddress] {
	return define.Rules[*networkingv1.IPAddress]{
		Validate: func(a *networkingv1.IPAddress) field.ErrorList {
			return validateParent(validate.SpecPath.Child("parentRef"), a.Spec.ParentRef)
		},
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			return validate.UnchangedUnsaid(validate.SpecPath.Child("parentRef"), a.Spec.ParentRef, old.Spec.ParentRef)
		},
	}
}

// validateParent checks what an address belongs to. What is missing is reported last, as
// kube-apiserver does, which has these rules in the tags of the type.
func validateParent(at *field.Path, parent *networkingv1.ParentReference) field.ErrorList {
	if parent == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if parent.Group != "" { // Services are of the group that is called so
		errs = validate.Invalid(at.Child("group"), parent.Group, validation.IsDNS1123Subdomain(parent.Group))
	}
	errs = append(errs, validate.Invalid(at.Child("resource"), parent.Resource, content.IsPathSegmentName(parent.Resource))...)
	errs = append(errs, validate.Invalid(at.Child("name"), parent.Name, content.IsPathSegmentName(parent.Name))...)
	errs = append(errs, validate.Invalid(at.Child("namespace"), parent.Namespace, content.IsPathSegmentName(parent.Namespace))...)
	errs = append(errs, validate.Required(at.Child("resource"), parent.Resource)...)
	return append(errs, validate.Required(at.Child("name"), parent.Name)...)
}

// ipAddressName is the rule for the names of IPAddresses: the address itself,
// in canonical form.
func ipAddressName(name string, _ bool) []string {
	var messages []string
	for _, err := range validation.IsValidIP(nil, name) {
		messages = append(messages, err.Detail)
	}
	return messages
}

func serviceCIDRRules() define.Rules[*networkingv1.ServiceCIDR] {
	return define.Rules[*networkingv1.ServiceCIDR]{
		ValidateCreate: validateServiceCIDR,
		ValidateUpdate: validateServiceCIDRUpdate,
	}
}

func validateServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	at := validate.SpecPath.Child("cidrs")
	switch n := len(c.Spec.CIDRs); {
	case n == 0:
		return field.ErrorList{field.Required(at, "at least one CIDR required")}
	case n > 2:
		return field.ErrorList{field.Invalid(at, c.Spec, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, cidr := range c.Spec.CIDRs {
		errs = append(errs, validation.IsValidCIDR(at.Index(i), cidr)...)
	}
	if len(c.Spec.CIDRs) == 1 {
		return errs
	}
	first, second := netutils.IPFamilyOfCIDRString(c.Spec.CIDRs[0]), netutils.IPFamilyOfCIDRString(c.Spec.CIDRs[1])
	if first == second && first != netutils.IPFamilyUnknown {
		errs = append(errs, field.Invalid(at, c.Spec.CIDRs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return errs
}

// validateServiceCIDRUpdate: a network stays, and may be joined by one of the other family.
func validateServiceCIDRUpdate(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	at, now, before := validate.SpecPath.Child("cidrs"), c.Spec.CIDRs, old.Spec.CIDRs
	grows := len(before) == 1 && len(now) == 2
	if len(now) != len(before) && !grows {
		return field.ErrorList{field.Invalid(at, now, validate.Immutable)}
	}
	var errs field.ErrorList
	for i, cidr := range before {
		errs = append(errs, validate.Unchanged(at.Index(i), now[i], cidr)...)
	}
	if grows {
		errs = append(errs, validateServiceCIDR(c)...)
	}
	return errs
}
