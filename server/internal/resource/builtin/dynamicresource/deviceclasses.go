package dynamicresource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func deviceClassRules() define.Rules[*resourcev1.DeviceClass] {
	return define.Rules[*resourcev1.DeviceClass]{
		PrepareForUpdate: func(c, old *resourcev1.DeviceClass) {
			for i := range min(len(c.Spec.Config), len(old.Spec.Config)) {
				keepOpaque(c.Spec.Config[i].Opaque, old.Spec.Config[i].Opaque)
			}
		},
		ValidateCreate: func(c *resourcev1.DeviceClass) field.ErrorList {
			return slices.Concat(validateDeviceClass(&c.Spec, nil), validate.LongName(c), tagsOfDeviceClass(&c.Spec))
		},
		ValidateUpdate: func(c, old *resourcev1.DeviceClass) field.ErrorList {
			return append(validateDeviceClass(&c.Spec, &old.Spec), tagsOfDeviceClass(&c.Spec)...)
		},
	}
}

// validateDeviceClass checks a class; what it was before, old, may be nil. Expressions and parameters that are as they
// were are not measured again: their bounds were once others.
func validateDeviceClass(spec, old *resourcev1.DeviceClassSpec) field.ErrorList {
	selectors, config := validate.SpecPath.Child("selectors"), validate.SpecPath.Child("config")
	sameSelectors := old != nil && equality.Semantic.DeepEqual(spec.Selectors, old.Selectors)
	sameConfig := old != nil && equality.Semantic.DeepEqual(spec.Config, old.Config)

	var errs field.ErrorList
	if !sameSelectors {
		errs = each(selectors, unlessTooMany(spec.Selectors, resourcev1.DeviceSelectorsMaxSize), validateSelector)
	}
	return append(errs, each(config, unlessTooMany(spec.Config, resourcev1.DeviceConfigMaxSize), func(at *field.Path, c resourcev1.DeviceClassConfiguration) field.ErrorList {
		return validateConfiguration(at, c.DeviceConfiguration, sameConfig)
	})...)
}

// tagsOfDeviceClass are the rules that kube-apiserver has in the tags of the type, and reports last.
func tagsOfDeviceClass(spec *resourcev1.DeviceClassSpec) field.ErrorList {
	selectors, config := validate.SpecPath.Child("selectors"), validate.SpecPath.Child("config")
	errs := tooMany(selectors, spec.Selectors, resourcev1.DeviceSelectorsMaxSize)
	errs = append(errs, eachUpTo(config, spec.Config, resourcev1.DeviceConfigMaxSize, func(at *field.Path, c resourcev1.DeviceClassConfiguration) field.ErrorList {
		return tagsOfConfiguration(at, c.DeviceConfiguration)
	})...)
	return append(errs, present(extendedResource, validate.SpecPath.Child("extendedResourceName"), spec.ExtendedResourceName)...)
}
