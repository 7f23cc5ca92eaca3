package core

import (
	corev1 "k8s.io/api/core/v1"
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
	}
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i, subset := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j, address := range subset.Addresses {
			errs = append(errs, validation.IsValidIP(at.Child("addresses").Index(j).Child("ip"), address.IP)...)
		}
		for j, address := range subset.NotReadyAddresses {
			errs = append(errs, validation.IsValidIP(at.Child("notReadyAddresses").Index(j).Child("ip"), address.IP)...)
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
		}
	}
	return errs
}
