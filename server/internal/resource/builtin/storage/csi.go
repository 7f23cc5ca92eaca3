package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	minUpdatePeriodSeconds = 10
	minTokenSeconds        = 600
	maxTokenSeconds        = 1 << 32
)

func csiDriverRules() define.Rules[*storagev1.CSIDriver] {
	return define.Rules[*storagev1.CSIDriver]{
		Default: func(d *storagev1.CSIDriver) {
			define.SetDefaultPtr(&d.Spec.AttachRequired, true)
			define.SetDefaultPtr(&d.Spec.PodInfoOnMount, false)
			define.SetDefaultPtr(&d.Spec.StorageCapacity, false)
			define.SetDefaultPtr(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
			define.SetDefaultPtr(&d.Spec.RequiresRepublish, false)
			define.SetDefaultPtr(&d.Spec.SELinuxMount, false)
			define.SetDefaultPtr(&d.Spec.PreventPodSchedulingIfMissing, false)
			if len(d.Spec.VolumeLifecycleModes) == 0 {
				d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
			}
		},
		Validate: func(d *storagev1.CSIDriver) field.ErrorList { return validateDriver(&d.Spec) },
		ValidateUpdate: func(d, old *storagev1.CSIDriver) field.ErrorList {
			// kube-apiserver calls the first one so.
			errs := validate.Unchanged(validate.SpecPath.Child("attachedRequired"), d.Spec.AttachRequired, old.Spec.AttachRequired)
			return append(errs, validate.Unchanged(validate.SpecPath.Child("volumeLifecycleModes"), d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)...)
		},
		Warnings: func(d, old *storagev1.CSIDriver) []string {
			changed := old == nil || !equality.Semantic.DeepEqual(d.Spec.TokenRequests, old.Spec.TokenRequests)
			if !changed || len(d.Spec.TokenRequests) == 0 || d.Spec.ServiceAccountTokenInSecrets != nil {
				return nil
			}
			return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
		},
	}
}

func validateDriver(spec *storagev1.CSIDriverSpec) field.ErrorList {
	errs := validate.Supported(validate.SpecPath.Child("fsGroupPolicy"), define.ValueOr(spec.FSGroupPolicy, ""),
		storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy)
	errs = append(errs, validateTokenRequests(validate.SpecPath.Child("tokenRequests"), spec.TokenRequests)...)
	for _, mode := range spec.VolumeLifecycleModes {
		errs = append(errs, validate.SupportedInOrder(validate.SpecPath.Child("volumeLifecycleModes"), mode,
			storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
	}
	if period := spec.NodeAllocatableUpdatePeriodSeconds; period != nil && *period < minUpdatePeriodSeconds {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("nodeAllocatableUpdatePeriodSeconds"), *period, "must be greater than or equal to 10 seconds"))
	}
	if spec.ServiceAccountTokenInSecrets != nil && len(spec.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("serviceAccountTokenInSecrets"), *spec.ServiceAccountTokenInSecrets,
			"serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return errs
}

func validateTokenRequests(at *field.Path, requests []storagev1.TokenRequest) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, request := range requests {
		if seen.Has(request.Audience) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("audience"), request.Audience))
			continue
		}
		seen.Insert(request.Audience)
		expiration := at.Index(i).Child("expirationSeconds")
		switch seconds := request.ExpirationSeconds; {
		case seconds == nil:
		case *seconds < minTokenSeconds:
			errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration less than 10 minutes"))
		case *seconds > maxTokenSeconds:
			errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	return errs
}

func csiStorageCapacityRules() define.Rules[*storagev1.CSIStorageCapacity] {
	return define.Rules[*storagev1.CSIStorageCapacity]{
		ValidateCreate: func(c *storagev1.CSIStorageCapacity) field.ErrorList { return validateCapacity(c, false) },
		ValidateUpdate: func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := validateCapacity(c, len(validate.LabelSelector(nil, old.NodeTopology)) > 0)
			errs = append(errs, validate.Unchanged(field.NewPath("nodeTopology"), c.NodeTopology, old.NodeTopology)...)
			return append(errs, validate.Unchanged(field.NewPath("storageClassName"), c.StorageClassName, old.StorageClassName)...)
		},
		Warnings: func(c, _ *storagev1.CSIStorageCapacity) []string {
			return podspec.NodeSelectorWarnings(field.NewPath("nodeTopology"), c.NodeTopology)
		},
	}
}

// validateCapacity checks an object, whose selector may have values that no label can have if it
// had such before.
func validateCapacity(c *storagev1.CSIStorageCapacity, lenient bool) field.ErrorList {
	options := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: lenient}
	errs := metavalidation.ValidateLabelSelector(c.NodeTopology, options, field.NewPath("nodeTopology"))
	errs = append(errs, validate.Invalid(field.NewPath("storageClassName"), c.StorageClassName, validation.IsDNS1123Subdomain(c.StorageClassName))...)
	if c.Capacity != nil {
		errs = append(errs, validate.NotNegativeQuantity(field.NewPath("capacity"), *c.Capacity)...)
	}
	return errs
}
