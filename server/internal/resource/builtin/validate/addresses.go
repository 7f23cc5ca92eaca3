package validate

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
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

// NotAddress complains about an address where a DNS name belongs.
func NotAddress(path *field.Path, host string) field.ErrorList {
	if netutils.ParseIPSloppy(host) != nil {
		return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
	}
	return nil
}

// IsOwnSlice reports whether an EndpointSlice is that of the API server, or of what serves metrics in the
// process of `levelwire up`. Both may listen on the loopback only.
func IsOwnSlice(namespace, name string) bool {
	return namespace == metav1.NamespaceDefault && name == "kubernetes" || namespace == metav1.NamespaceSystem && name == "metrics-server"
}

// MayCall reports whether the server may call a webhook or an aggregated server at an address of an
// EndpointSlice. One of the server's own host or network is refused when a slice is written, but an older
// server may have stored it. Who writes slices could otherwise reach services there that only the server can.
func MayCall(slice *discoveryv1.EndpointSlice, address string) bool {
	if slice.AddressType == discoveryv1.AddressTypeFQDN || IsOwnSlice(slice.Namespace, slice.Name) {
		return true
	}
	return len(EndpointIP(nil, address)) == 0
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
