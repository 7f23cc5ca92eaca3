package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func deviceClassRules() define.Rules[*resourcev1.DeviceClass] {
	return define.Rules[*resourcev1.DeviceClass]{}
}

func resourceClaimRules() define.Rules[*resourcev1.ResourceClaim] {
	return define.Rules[*resourcev1.ResourceClaim]{
		Default: func(c *resourcev1.ResourceClaim) { defaultDeviceClaim(&c.Spec) },
		Validate: func(c *resourcev1.ResourceClaim) field.ErrorList {
			return validateDeviceClaim(validate.SpecPath, &c.Spec)
		},
		ValidateUpdate: func(c, old *resourcev1.ResourceClaim) field.ErrorList {
			return validate.Unchanged(validate.SpecPath, c.Spec, old.Spec)
		},
	}
}

func resourceClaimTemplateRules() define.Rules[*resourcev1.ResourceClaimTemplate] {
	return define.Rules[*resourcev1.ResourceClaimTemplate]{
		Default: func(t *resourcev1.ResourceClaimTemplate) { defaultDeviceClaim(&t.Spec.Spec) },
		Validate: func(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return validateDeviceClaim(validate.SpecPath.Child("spec"), &t.Spec.Spec)
		},
		ValidateUpdate: func(t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return validate.Unchanged(validate.SpecPath, t.Spec, old.Spec)
		},
	}
}

func defaultDeviceClaim(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		if exactly := spec.Devices.Requests[i].Exactly; exactly != nil {
			define.SetDefault(&exactly.AllocationMode, resourcev1.DeviceAllocationModeExactCount)
			if exactly.AllocationMode == resourcev1.DeviceAllocationModeExactCount {
				define.SetDefault(&exactly.Count, 1)
			}
		}
		for j := range spec.Devices.Requests[i].FirstAvailable {
			alternative := &spec.Devices.Requests[i].FirstAvailable[j]
			define.SetDefault(&alternative.AllocationMode, resourcev1.DeviceAllocationModeExactCount)
			if alternative.AllocationMode == resourcev1.DeviceAllocationModeExactCount {
				define.SetDefault(&alternative.Count, 1)
			}
		}
	}
}

func validateDeviceClaim(path *field.Path, spec *resourcev1.ResourceClaimSpec) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, r := range spec.Devices.Requests {
		at := path.Child("devices", "requests").Index(i)
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), r.Name, validation.IsDNS1123Label)...)
		if names.Has(r.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names.Insert(r.Name)
		switch {
		case r.Exactly == nil && len(r.FirstAvailable) == 0:
			errs = append(errs, field.Required(at, "exactly one of `exactly` or `firstAvailable` is required"))
		case r.Exactly != nil && len(r.FirstAvailable) > 0:
			errs = append(errs, field.Invalid(at, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
		case r.Exactly != nil:
			errs = append(errs, validate.Required(at.Child("exactly", "deviceClassName"), r.Exactly.DeviceClassName)...)
			errs = append(errs, validate.OneOf(at.Child("exactly", "allocationMode"), r.Exactly.AllocationMode,
				resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll)...)
		}
	}
	return errs
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
