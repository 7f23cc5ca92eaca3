package validate

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IP checks an address in a field that has taken any form of it since the first version of the API:
// it need not be the canonical one, but must mean the same to every reader.
func IP(path *field.Path, value string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, value, true, nil)
}

// CIDR is IP for a range.
func CIDR(path *field.Path, value string) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, value, true, nil)
}

// EndpointIP checks an address that traffic is sent to: one that every host has for itself is none.
func EndpointIP(path *field.Path, value string) field.ErrorList {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return field.ErrorList{field.Invalid(path, value, "must be a valid IP address")}
	}
	address = address.Unmap()
	var errs field.ErrorList
	if address.IsUnspecified() {
		errs = append(errs, field.Invalid(path, value, "may not be unspecified ("+value+")"))
	}
	if address.IsLoopback() {
		errs = append(errs, field.Invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
	}
	if address.IsLinkLocalUnicast() {
		errs = append(errs, field.Invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
	}
	if address.IsLinkLocalMulticast() {
		errs = append(errs, field.Invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
	}
	return errs
}
