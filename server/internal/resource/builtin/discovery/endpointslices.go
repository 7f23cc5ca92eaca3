package discovery

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
)

func endpointSliceRules() define.Rules[*discoveryv1.EndpointSlice] {
	return define.Rules[*discoveryv1.EndpointSlice]{
		Default: func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				define.SetDefaultPtr(&s.Ports[i].Name, "")
				define.SetDefaultPtr(&s.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		},
		Validate: validateEndpointSlice,
		ValidateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			return validate.Unchanged(field.NewPath("addressType"), s.AddressType, old.AddressType)
		},
	}
}

func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := validate.OneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	endpoints := field.NewPath("endpoints")
	if n := len(s.Endpoints); n > maxSliceEndpoints {
		return append(errs, field.TooMany(endpoints, n, maxSliceEndpoints))
	}
	for i, e := range s.Endpoints {
		at := endpoints.Index(i).Child("addresses")
		switch n := len(e.Addresses); {
		case n == 0:
			errs = append(errs, field.Required(at, "must contain at least 1 address"))
		case n > maxEndpointAddresses:
			errs = append(errs, field.TooMany(at, n, maxEndpointAddresses))
		}
		for j, address := range e.Addresses {
			if s.AddressType == discoveryv1.AddressTypeFQDN {
				errs = append(errs, validation.IsFullyQualifiedDomainName(at.Index(j), address)...)
			} else {
				errs = append(errs, validateEndpointIP(at.Index(j), address)...)
			}
		}
	}
	names := sets.New[string]()
	for i, p := range s.Ports {
		at := field.NewPath("ports").Index(i)
		name := define.ValueOr(p.Name, "")
		if name != "" {
			errs = append(errs, validate.Invalid(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, podspec.Protocol(at.Child("protocol"), define.ValueOr(p.Protocol, ""))...)
		if p.Port != nil {
			errs = append(errs, validate.PortNumber(at.Child("port"), *p.Port)...)
		}
	}
	return errs
}

// validateEndpointIP refuses addresses that are those of no endpoint, and by which a user
// who may write EndpointSlices could point this server, which calls webhooks and aggregated
// servers there, at services of its own network. Unlike kube-apiserver it allows the
// loopback: what serves metrics in the process of `levelwire up` listens there.
func validateEndpointIP(at *field.Path, address string) field.ErrorList {
	if errs := validate.IP(at, address); len(errs) > 0 {
		return errs
	}
	switch ip, _ := netip.ParseAddr(address); {
	case ip.IsUnspecified():
		return field.ErrorList{field.Invalid(at, address, "may not be unspecified (0.0.0.0 or ::)")}
	case ip.IsLinkLocalUnicast():
		return field.ErrorList{field.Invalid(at, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")}
	case ip.IsLinkLocalMulticast():
		return field.ErrorList{field.Invalid(at, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")}
	}
	return nil
}
