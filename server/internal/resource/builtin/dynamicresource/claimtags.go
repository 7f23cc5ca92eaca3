package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Some rules of kube-apiserver are tags of fields in k8s.io/api, as in +k8s:maxItems=32. Errors about them come after all
// others, in the order of the fields; of a list that is too long, nothing else is said. The functions whose names begin
// with tagsOf check them.

func tagsOfDeviceClaim(at *field.Path, claim *resourcev1.DeviceClaim) field.ErrorList {
	requests, constraints, config := at.Child("requests"), at.Child("constraints"), at.Child("config")
	errs := set(requests, claim.Requests, resourcev1.DeviceRequestsMaxSize, func(r resourcev1.DeviceRequest) string { return r.Name })
	errs = append(errs, each(requests, unlessTooMany(claim.Requests, resourcev1.DeviceRequestsMaxSize), tagsOfRequest)...)
	errs = append(errs, eachUpTo(constraints, claim.Constraints, resourcev1.DeviceConstraintsMaxSize, func(at *field.Path, c resourcev1.DeviceConstraint) field.ErrorList {
		errs := tagsOfReferences(at, c.Requests)
		errs = append(errs, present(fullyQualifiedName, at.Child("matchAttribute"), c.MatchAttribute)...)
		return append(errs, present(fullyQualifiedName, at.Child("distinctAttribute"), c.DistinctAttribute)...)
	})...)
	return append(errs, eachUpTo(config, claim.Config, resourcev1.DeviceConfigMaxSize, func(at *field.Path, c resourcev1.DeviceClaimConfiguration) field.ErrorList {
		return append(tagsOfReferences(at, c.Requests), tagsOfConfiguration(at, c.DeviceConfiguration)...)
	})...)
}

func tagsOfReferences(at *field.Path, references []string) field.ErrorList {
	return set(at.Child("requests"), references, resourcev1.DeviceRequestsMaxSize, itself[string])
}

func tagsOfConfiguration(at *field.Path, c resourcev1.DeviceConfiguration) field.ErrorList {
	if c.Opaque == nil {
		return nil
	}
	return driverName.required(at.Child("opaque", "driver"), c.Opaque.Driver)
}

func tagsOfRequest(at *field.Path, r resourcev1.DeviceRequest) field.ErrorList {
	var errs field.ErrorList
	if r.Exactly != nil {
		errs = askedExactly(r.Exactly).tags(at.Child("exactly"))
	}
	alternatives := at.Child("firstAvailable")
	errs = append(errs, set(alternatives, r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize, func(s resourcev1.DeviceSubRequest) string { return s.Name })...)
	return append(errs, each(alternatives, unlessTooMany(r.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize),
		func(at *field.Path, s resourcev1.DeviceSubRequest) field.ErrorList {
			return append(longName.required(at.Child("deviceClassName"), s.DeviceClassName), askedOfAlternative(&s).tags(at)...)
		})...)
}

func (a asked) tags(at *field.Path) field.ErrorList {
	errs := tooMany(at.Child("selectors"), a.selectors, resourcev1.DeviceSelectorsMaxSize)
	errs = append(errs, validate.Supported(at.Child("allocationMode"), a.mode, resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)...)
	errs = append(errs, each(at.Child("tolerations"), a.tolerations, tagsOfToleration)...)
	return append(errs, eachUpTo(at.Child("derivedAttributes"), a.derived, resourcev1.DeviceDerivedAttributesMaxSize,
		func(at *field.Path, d resourcev1.DeviceDerivedAttribute) field.ErrorList {
			errs := fullyQualifiedName.required(at.Child("name"), string(d.Name))
			return append(errs, validate.Required(at.Child("expression"), d.Expression)...)
		})...)
}
