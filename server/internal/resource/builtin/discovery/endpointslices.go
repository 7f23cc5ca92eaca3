package discovery

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

func endpointSliceRules() define.Rules[*discoveryv1.EndpointSlice] {
	return define.Rules[*discoveryv1.EndpointSlice]{
		CompleteStored: func(s *discoveryv1.EndpointSlice) {
			define.NoEmptyList(&s.Endpoints)
			define.NoEmptyList(&s.Ports)
		},
		Default: func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				define.SetDefaultPtr(&s.Ports[i].Name, "")
				define.SetDefaultPtr(&s.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		},
		PrepareForCreate: func(s *discoveryv1.EndpointSlice) { dropTopology(s, nil) },
		PrepareForUpdate: func(s, old *discoveryv1.EndpointSlice) {
			if !sameSlice(s, old) {
				s.Generation = old.Generation + 1
			}
			if !equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) {
				dropTopology(s, old)
			}
		},
		ValidateCreate: func(s *discoveryv1.EndpointSlice) field.ErrorList { return validateEndpointSlice(s, nil) },
		ValidateUpdate: validateEndpointSlice,
		Warnings:       endpointSliceWarnings,
	}
}

// sameSlice reports whether an update leaves the generation. Labels count, which say whose endpoints
// these are, and so does the topology that an update brings and that is dropped.
func sameSlice(s, old *discoveryv1.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(s.Labels, old.Labels) && s.AddressType == old.AddressType &&
		equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) && equality.Semantic.DeepEqual(s.Ports, old.Ports)
}

// dropTopology removes the field that v1 only reads, from before there was nodeName. A client
// that does not know nodeName and writes back the field keeps the node that way.
func dropTopology(s, old *discoveryv1.EndpointSlice) {
	before := map[string]bool{}
	if old != nil {
		for i := range old.Endpoints {
			if name := old.Endpoints[i].DeprecatedTopology[corev1.LabelHostname]; name != "" {
				before[name] = true
			}
		}
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if name := e.DeprecatedTopology[corev1.LabelHostname]; e.NodeName == nil && before[name] && len(validation.IsDNS1123Subdomain(name)) == 0 {
			e.NodeName = &name
		}
		e.DeprecatedTopology = nil
	}
}

// endpointSliceWarnings are about a type of addresses on which little acts, and about addresses
// that readers may understand differently. Kubernetes' controllers, which write most, write none.
func endpointSliceWarnings(s, old *discoveryv1.EndpointSlice) []string {
	if s.AddressType == discoveryv1.AddressTypeFQDN {
		if old == nil {
			return []string{"spec.addressType: FQDN endpoints are deprecated"}
		}
		return nil
	}
	switch s.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return nil
	}
	var warnings []string
	for i := range s.Endpoints {
		at := field.NewPath("endpoints").Index(i).Child("addresses")
		for j, address := range s.Endpoints[i].Addresses {
			warnings = append(warnings, validation.GetWarningsForIP(at.Index(j), address)...)
		}
	}
	return warnings
}
