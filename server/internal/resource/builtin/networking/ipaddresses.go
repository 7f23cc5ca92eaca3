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
		ValidateCreate: func(a *networkingv1.IPAddress) field.ErrorList { return validateParent(a.Spec.ParentRef, true) },
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			errs := validateParent(a.Spec.ParentRef, false)
			return append(errs, validate.UnchangedUnsaid(parentPath, a.Spec.ParentRef, old.Spec.ParentRef)...)
		},
	}
}

var parentPath = validate.SpecPath.Child("parentRef")

// validateParent checks what an address belongs to. What a new one lacks is reported last, as by
// kube-apiserver, which has these rules in the tags of the type; those of a changed one say no more
// than that it must not change.
func validateParent(parent *networkingv1.ParentReference, isNew bool) field.ErrorList {
	if parent == nil {
		return field.ErrorList{field.Required(parentPath, "")}
	}
	var errs field.ErrorList
	if parent.Group != "" { // Services are of the group that is called so
		errs = validate.Invalid(parentPath.Child("group"), parent.Group, validation.IsDNS1123Subdomain(parent.Group))
	}
	var missing field.ErrorList
	for _, member := range []struct{ name, value string }{{"resource", parent.Resource}, {"name", parent.Name}} {
		at := parentPath.Child(member.name)
		switch {
		case member.value != "":
			errs = append(errs, validate.Invalid(at, member.value, content.IsPathSegmentName(member.value))...)
		case isNew:
			missing = append(missing, field.Required(at, ""))
		default:
			errs = append(errs, field.Required(at, ""))
		}
	}
	errs = append(errs, validate.Invalid(parentPath.Child("namespace"), parent.Namespace, content.IsPathSegmentName(parent.Namespace))...)
	return append(errs, missing...)
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
