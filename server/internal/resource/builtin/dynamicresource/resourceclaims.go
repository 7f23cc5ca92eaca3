package dynamicresource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func resourceClaimRules() define.Rules[*resourcev1.ResourceClaim] {
	devices := validate.SpecPath.Child("devices")
	return define.Rules[*resourcev1.ResourceClaim]{
		CompleteStored: func(c *resourcev1.ResourceClaim) { define.NoEmptyList(&c.Spec.Devices.Requests) },
		CompleteStatus: func(c *resourcev1.ResourceClaim) {
			define.NoEmptyListIn(&c.Status.Devices, func(device *resourcev1.AllocatedDeviceStatus) *[]metav1.Condition { return &device.Conditions })
		},
		Default: func(c *resourcev1.ResourceClaim) {
			defaultDeviceClaim(&c.Spec.Devices)
			if c.Status.Allocation != nil {
				for i := range c.Status.Allocation.Devices.Results {
					defaultTolerations(c.Status.Allocation.Devices.Results[i].Tolerations)
				}
			}
		},
		ValidateCreate: func(c *resourcev1.ResourceClaim) field.ErrorList {
			return append(validateDeviceClaim(devices, &c.Spec.Devices), tagsOfDeviceClaim(devices, &c.Spec.Devices)...)
		},
		// What cannot change is not checked again.
		ValidateUpdate: func(c, old *resourcev1.ResourceClaim) field.ErrorList {
			if !equality.Semantic.DeepEqual(c.Spec, old.Spec) {
				return field.ErrorList{field.Invalid(validate.SpecPath, nil, validate.Immutable)}
			}
			return nil
		},
		PrepareForUpdate: func(c, old *resourcev1.ResourceClaim) { keepParameters(&c.Spec.Devices, &old.Spec.Devices) },
		PrepareForStatusUpdate: func(c, old *resourcev1.ResourceClaim) {
			keepJSONOfStatus(&c.Status, &old.Status)
			dropDeallocated(c, old)
		},
		NeedsLabel:     adminAccessOfClaim,
		ValidateStatus: validateClaimStatus,
	}
}

func resourceClaimTemplateRules() define.Rules[*resourcev1.ResourceClaimTemplate] {
	devices := validate.SpecPath.Child("spec", "devices")
	template := func(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
		errs := validate.TemplateMetadata(validate.SpecPath.Child("metadata"), &t.Spec.ObjectMeta)
		return append(errs, validateDeviceClaim(devices, &t.Spec.Spec.Devices)...)
	}
	return define.Rules[*resourcev1.ResourceClaimTemplate]{
		CompleteStored: func(t *resourcev1.ResourceClaimTemplate) { define.NoEmptyList(&t.Spec.Spec.Devices.Requests) },
		Default:        func(t *resourcev1.ResourceClaimTemplate) { defaultDeviceClaim(&t.Spec.Spec.Devices) },
		ValidateCreate: func(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return append(template(t), tagsOfDeviceClaim(devices, &t.Spec.Spec.Devices)...)
		},
		PrepareForUpdate: func(t, old *resourcev1.ResourceClaimTemplate) {
			keepParameters(&t.Spec.Spec.Devices, &old.Spec.Spec.Devices)
		},
		NeedsLabel: func(t, _ *resourcev1.ResourceClaimTemplate) *resource.NeededLabel {
			return adminAccessOfRequests(t.Spec.Spec.Devices.Requests)
		},
		ValidateUpdate: func(t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
			errs := append(template(t), validate.Unchanged(validate.SpecPath, t.Spec, old.Spec)...)
			if equality.Semantic.DeepEqual(t.Spec.Spec, old.Spec.Spec) {
				return errs
			}
			return append(errs, tagsOfDeviceClaim(devices, &t.Spec.Spec.Devices)...)
		},
	}
}

func defaultDeviceClaim(claim *resourcev1.DeviceClaim) {
	for i := range claim.Requests {
		if exactly := claim.Requests[i].Exactly; exactly != nil {
			defaultCount(&exactly.AllocationMode, &exactly.Count)
			defaultTolerations(exactly.Tolerations)
		}
		for j := range claim.Requests[i].FirstAvailable {
			alternative := &claim.Requests[i].FirstAvailable[j]
			defaultCount(&alternative.AllocationMode, &alternative.Count)
			defaultTolerations(alternative.Tolerations)
		}
	}
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	define.SetDefault(mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		define.SetDefault(count, 1)
	}
}

func defaultTolerations(tolerations []resourcev1.DeviceToleration) {
	for i := range tolerations {
		define.SetDefault(&tolerations[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}
