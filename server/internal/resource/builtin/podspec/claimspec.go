package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// ValidateClaimSpec checks the spec of a claim, in a claim or in a template.
func ValidateClaimSpec(path *field.Path, spec *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	errs := ValidateAccessModes(path.Child("accessModes"), spec.AccessModes)
	errs = append(errs, validate.LabelSelector(path.Child("selector"), spec.Selector)...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at, size.String(), "must be greater than zero"))
	}
	if spec.VolumeMode != nil {
		errs = append(errs, validate.OneOf(path.Child("volumeMode"), *spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	return errs
}

// ValidateAccessModes checks the access modes of a claim or of a volume.
func ValidateAccessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "at least 1 access mode is required")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, validate.OneOf(path.Index(i), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
		if mode == corev1.ReadWriteOncePod && len(modes) > 1 {
			errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
		}
	}
	return errs
}

// DefaultClaim completes a claim, its phase aside: templates have none.
func DefaultClaim(c *corev1.PersistentVolumeClaim) {
	define.SetDefaultPtr(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	// The two forms of the source agree for the kinds that both know.
	if c.Spec.DataSource != nil && c.Spec.DataSourceRef == nil {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: c.Spec.DataSource.APIGroup, Kind: c.Spec.DataSource.Kind, Name: c.Spec.DataSource.Name}
	}
}
