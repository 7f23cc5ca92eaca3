package discovery

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestAddressesOfEndpoints: the server calls webhooks and aggregated servers at them. Only its own
// endpoints may be on the loopback.
func TestAddressesOfEndpoints(t *testing.T) {
	for address, says := range map[string]string{
		"10.1.2.3": "", "127.0.0.1": "loopback range", "::1": "loopback range", "2001:db8::1": "", "203.0.113.7": "",
		"169.254.169.254": "link-local range", "fe80::1": "link-local range", "0.0.0.0": "unspecified", "::": "unspecified",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "10.1.2": "must be a valid IP address", "": "must be a valid IP address",
	} {
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
		if strings.Contains(address, ":") {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
		for name, own := range map[string]bool{"": false, "default/other": false, "other/kubernetes": false, "kube-system/kubernetes": false, "default/kubernetes": true, "kube-system/metrics-server": true} {
			slice.Namespace, slice.Name, _ = strings.Cut(name, "/")
			says := says
			if own && says == "loopback range" {
				says = ""
			}
			err := validateEndpointSlice(slice, nil).ToAggregate()
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%q of slice %q: %v, want %q", address, name, err, says)
			}
		}
	}
}
