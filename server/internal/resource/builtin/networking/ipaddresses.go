package networking

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func ipAddressRules() define.Rules[*networkingv1.IPAddress] {
	return define.Rules[*networkingv1.IPAddress]{
		Validate: func(a *networkingv1.IPAddress) field.ErrorList {
			at := validate.SpecPath.Child("parentRef")
			if a.Spec.ParentRef == nil {
				return field.ErrorList{field.Required(at, "")}
			}
			return append(validate.Required(at.Child("resource"), a.Spec.ParentRef.Resource), validate.Required(at.Child("name"), a.Spec.ParentRef.Name)...)
		},
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			return validate.Unchanged(validate.SpecPath.Child("parentRef"), a.Spec.ParentRef, old.Spec.ParentRef)
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

func serviceCIDRRules() define.Rules[*networkingv1.ServiceCIDR] {
	return define.Rules[*networkingv1.ServiceCIDR]{
		Validate: func(c *networkingv1.ServiceCIDR) field.ErrorList {
			at := validate.SpecPath.Child("cidrs")
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
			return validate.Unchanged(validate.SpecPath.Child("cidrs"), c.Spec.CIDRs, old.Spec.CIDRs)
		},
	}
}
