package validate

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
