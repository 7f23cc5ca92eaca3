package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func deviceClassRules() define.Rules[*resourcev1.DeviceClass] {
	return define.Rules[*resourcev1.DeviceClass]{
		ValidateCreate: func(c *resourcev1.DeviceClass) field.ErrorList { return validateDeviceClass(&c.Spec, nil) },
		ValidateUpdate: func(c, old *resourcev1.DeviceClass) field.ErrorList { return validateDeviceClass(&c.Spec, &old.Spec) },
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
	errs = append(errs, each(config, unlessTooMany(spec.Config, resourcev1.DeviceConfigMaxSize), func(at *field.Path, c resourcev1.DeviceClassConfiguration) field.ErrorList {
		return validateConfiguration(at, c.DeviceConfiguration, sameConfig)
	})...)

	errs = append(errs, tooMany(selectors, spec.Selectors, resourcev1.DeviceSelectorsMaxSize)...)
	errs = append(errs, eachUpTo(config, spec.Config, resourcev1.DeviceConfigMaxSize, func(at *field.Path, c resourcev1.DeviceClassConfiguration) field.ErrorList {
		return tagsOfConfiguration(at, c.DeviceConfiguration)
	})...)
	return append(errs, present(extendedResource, validate.SpecPath.Child("extendedResourceName"), spec.ExtendedResourceName)...)
}

func resourceSliceRules() define.Rules[*resourcev1.ResourceSlice] {
	return define.Rules[*resourcev1.ResourceSlice]{
		Validate: func(s *resourcev1.ResourceSlice) field.ErrorList {
			errs := validate.RequiredSyntax(validate.SpecPath.Child("driver"), s.Spec.Driver, validation.IsDNS1123Subdomain)
			errs = append(errs, validate.Required(validate.SpecPath.Child("pool", "name"), s.Spec.Pool.Name)...)
			if s.Spec.Pool.ResourceSliceCount <= 0 {
				errs = append(errs, field.Invalid(validate.SpecPath.Child("pool", "resourceSliceCount"), s.Spec.Pool.ResourceSliceCount, "must be greater than zero"))
			}
			names := sets.New[string]()
			for i, d := range s.Spec.Devices {
				at := validate.SpecPath.Child("devices").Index(i).Child("name")
				errs = append(errs, validate.RequiredSyntax(at, d.Name, validation.IsDNS1123Label)...)
				if names.Has(d.Name) {
					errs = append(errs, field.Duplicate(at, d.Name))
				}
				names.Insert(d.Name)
			}
			return errs
		},
		ValidateUpdate: func(s, old *resourcev1.ResourceSlice) field.ErrorList {
			errs := validate.Unchanged(validate.SpecPath.Child("driver"), s.Spec.Driver, old.Spec.Driver)
			errs = append(errs, validate.Unchanged(validate.SpecPath.Child("pool", "name"), s.Spec.Pool.Name, old.Spec.Pool.Name)...)
			return append(errs, validate.Unchanged(validate.SpecPath.Child("nodeName"), s.Spec.NodeName, old.Spec.NodeName)...)
		},
	}
}

func deviceTaintRuleRules() define.Rules[*resourcev1.DeviceTaintRule] {
	return define.Rules[*resourcev1.DeviceTaintRule]{
		Validate: func(r *resourcev1.DeviceTaintRule) field.ErrorList {
			at := validate.SpecPath.Child("taint")
			errs := validate.RequiredSyntax(at.Child("key"), r.Spec.Taint.Key, validation.IsQualifiedName)
			return append(errs, validate.Required(at.Child("effect"), string(r.Spec.Taint.Effect))...)
		},
	}
}
