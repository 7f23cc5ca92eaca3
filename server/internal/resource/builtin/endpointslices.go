package builtin

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
)

func endpointSliceRules() rules[*discoveryv1.EndpointSlice] {
	return rules[*discoveryv1.EndpointSlice]{
		Default: func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				setDefaultPtr(&s.Ports[i].Name, "")
				setDefaultPtr(&s.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		},
		Validate: validateEndpointSlice,
		ValidateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			return unchanged(field.NewPath("addressType"), s.AddressType, old.AddressType)
		},
	}
}

func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	errs := oneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
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
				errs = append(errs, validation.IsValidIP(at.Index(j), address)...)
			}
		}
	}
	names := sets.New[string]()
	for i, p := range s.Ports {
		at := field.NewPath("ports").Index(i)
		name := valueOr(p.Name, "")
		if name != "" {
			errs = append(errs, invalid(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, protocol(at.Child("protocol"), valueOr(p.Protocol, ""))...)
		if p.Port != nil {
			errs = append(errs, portNumber(at.Child("port"), *p.Port)...)
		}
	}
	return errs
}
