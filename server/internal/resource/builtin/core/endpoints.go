package core

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func endpointsRules() define.Rules[*corev1.Endpoints] {
	return define.Rules[*corev1.Endpoints]{
		Default: func(e *corev1.Endpoints) {
			for i := range e.Subsets {
				for j := range e.Subsets[i].Ports {
					define.SetDefault(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
				}
			}
		},
		Validate: validateEndpoints,
		Warnings: endpointsWarnings,
	}
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i, subset := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range subset.Addresses {
			errs = append(errs, validateEndpointAddress(at.Child("addresses").Index(j), &subset.Addresses[j], isOwn(e))...)
		}
		for j := range subset.NotReadyAddresses {
			errs = append(errs, validateEndpointAddress(at.Child("notReadyAddresses").Index(j), &subset.NotReadyAddresses[j], isOwn(e))...)
		}
		for j, port := range subset.Ports {
			portAt := at.Child("ports").Index(j)
			if port.Name == "" && len(subset.Ports) > 1 {
				errs = append(errs, field.Required(portAt.Child("name"), ""))
			} else if port.Name != "" {
				errs = append(errs, validate.Invalid(portAt.Child("name"), port.Name, validation.IsDNS1123Label(port.Name))...)
			}
			errs = append(errs, validate.PortNumber(portAt.Child("port"), port.Port)...)
			errs = append(errs, podspec.Protocol(portAt.Child("protocol"), port.Protocol)...)
			if port.AppProtocol != nil {
				errs = append(errs, validate.Invalid(portAt.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))...)
			}
		}
	}
	return errs
}

func validateEndpointAddress(path *field.Path, address *corev1.EndpointAddress, own bool) field.ErrorList {
	errs := validate.IP(path.Child("ip"), address.IP)
	if address.Hostname != "" {
		errs = append(errs, validate.Invalid(path.Child("hostname"), address.Hostname, validation.IsDNS1123Label(address.Hostname))...)
	}
	if name := address.NodeName; name != nil {
		errs = append(errs, validate.Invalid(path.Child("nodeName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	if !own {
		errs = append(errs, validate.EndpointIP(path.Child("ip"), address.IP)...)
	}
	return errs
}

// isOwn reports whether Endpoints are those of the API server, which may listen on the loopback only.
func isOwn(e *corev1.Endpoints) bool {
	return e.Namespace == metav1.NamespaceDefault && e.Name == "kubernetes"
}

// endpointsWarnings are about addresses that readers may understand differently. The endpoints
// controller, which writes most, writes none.
func endpointsWarnings(e, _ *corev1.Endpoints) []string {
	if e.Labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
		return nil
	}
	var warnings []string
	for i := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		for j, address := range e.Subsets[i].Addresses {
			warnings = append(warnings, validation.GetWarningsForIP(at.Child("addresses").Index(j).Child("ip"), address.IP)...)
		}
		for j, address := range e.Subsets[i].NotReadyAddresses {
			warnings = append(warnings, validation.GetWarningsForIP(at.Child("notReadyAddresses").Index(j).Child("ip"), address.IP)...)
		}
	}
	return warnings
}
