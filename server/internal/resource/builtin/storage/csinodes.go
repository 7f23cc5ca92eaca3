package storage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxNodeID           = 256
	maxHealthConditions = 16
	maxHealthReason     = 256
	maxHealthMessage    = 1024
)

func csiNodeRules() define.Rules[*storagev1.CSINode] {
	return define.Rules[*storagev1.CSINode]{
		CompleteStored: func(n *storagev1.CSINode) {
			define.NoEmptyList(&n.Spec.Drivers)
			for i := range n.Spec.Drivers {
				define.NoEmptyList(&n.Spec.Drivers[i].TopologyKeys)
			}
		},
		Validate: func(n *storagev1.CSINode) field.ErrorList {
			var errs field.ErrorList
			seen := sets.New[string]()
			for i, d := range n.Spec.Drivers {
				at := validate.SpecPath.Child("drivers").Index(i)
				errs = append(errs, podspec.CSIDriverName(at.Child("name"), d.Name)...)
				errs = append(errs, validateNodeDriver(at, d)...)
				if seen.Has(d.Name) {
					errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
				}
				seen.Insert(d.Name)
				errs = append(errs, validateTopologyKeys(at, d.TopologyKeys)...)
			}
			return errs
		},
		ValidateUpdate: validateNodeDriversStay,
		ValidateStatus: func(n, _ *storagev1.CSINode) field.ErrorList { return validateHealth(n.Status.StorageHealth) },
	}
}

// validateNodeDriversStay refuses a change of a driver but for how many volumes it can have.
func validateNodeDriversStay(n, old *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	now := make(map[string][]storagev1.CSINodeDriver, len(n.Spec.Drivers))
	for _, d := range n.Spec.Drivers {
		now[d.Name] = append(now[d.Name], d)
	}
	for _, before := range old.Spec.Drivers {
		for _, d := range now[before.Name] {
			d.Allocatable, before.Allocatable = nil, nil
			errs = append(errs, validate.Unchanged(validate.SpecPath.Child("drivers"), d, before)...)
		}
		delete(now, before.Name)
	}
	return errs
}

func validateNodeDriver(at *field.Path, d storagev1.CSINodeDriver) field.ErrorList {
	errs := validate.Required(at.Child("nodeID"), d.NodeID)
	if len(d.NodeID) > maxNodeID {
		errs = append(errs, field.Invalid(at.Child("nodeID"), d.NodeID, "must be 256 characters or less"))
	}
	if d.Allocatable != nil {
		errs = append(errs, validate.NotNegative(at.Child("allocatable", "count"), d.Allocatable.Count)...)
	}
	return errs
}

func validateTopologyKeys(at *field.Path, keys []string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for _, key := range keys {
		errs = append(errs, validate.Required(at, key)...)
		if seen.Has(key) {
			errs = append(errs, field.Duplicate(at, key))
		}
		seen.Insert(key)
		errs = append(errs, validate.Invalid(at, key, validation.IsQualifiedName(key))...)
	}
	return errs
}

// validateHealth checks what a node says of the storage of its drivers, each of which is there once.
func validateHealth(health []storagev1.StorageHealth) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, h := range health {
		at := field.NewPath("status", "storageHealth").Index(i)
		if seen.Has(h.Name) {
			errs = append(errs, field.Duplicate(at, h.Name))
		}
		seen.Insert(h.Name)
		errs = append(errs, podspec.CSIDriverName(at.Child("name"), h.Name)...)
		if n := len(h.HealthConditions); n > maxHealthConditions {
			errs = append(errs, field.TooMany(at.Child("healthConditions"), n, maxHealthConditions))
			continue
		}
		for j := range h.HealthConditions {
			errs = append(errs, validateHealthCondition(at.Child("healthConditions").Index(j), &h.HealthConditions[j])...)
		}
	}
	return errs
}

func validateHealthCondition(at *field.Path, c *storagev1.StorageHealthCondition) field.ErrorList {
	errs := validate.Supported(at.Child("status"), c.Status, storagev1.StorageDegraded, storagev1.StorageUnreachable)
	errs = append(errs, validate.RequiredSyntax(at.Child("reason"), c.Reason, metavalidation.IsValidConditionReason)...)
	if len(c.Reason) > maxHealthReason {
		errs = append(errs, field.TooLong(at.Child("reason"), "", maxHealthReason))
	}
	if len(c.Message) > maxHealthMessage {
		errs = append(errs, field.TooLong(at.Child("message"), "", maxHealthMessage))
	}
	if c.AccessMode != nil {
		errs = append(errs, validate.Supported(at.Child("accessMode"), *c.AccessMode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
	}
	if c.VolumeMode != nil {
		errs = append(errs, validate.SupportedInOrder(at.Child("volumeMode"), *c.VolumeMode, corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock)...)
	}
	return errs
}
