package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// ValidateClaimSpec checks the spec of a claim, in a claim or in a template.
func ValidateClaimSpec(path *field.Path, spec *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	return ValidateClaimSpecUpdate(path, spec, nil)
}

// ValidateClaimSpecUpdate is ValidateClaimSpec for what replaces an old spec, nil if it is new. Of a claim
// whose data sources have named a group, kube-apiserver does not check the group any more.
func ValidateClaimSpecUpdate(path *field.Path, spec, old *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	errs = append(errs, validate.LabelSelector(path.Child("selector"), spec.Selector)...)
	errs = append(errs, ValidateAccessModes(path.Child("accessModes"), spec.AccessModes)...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, validate.PositiveQuantity(at, size)...)
	}
	if name := spec.StorageClassName; name != nil {
		errs = append(errs, ClassName(path.Child("storageClassName"), *name)...)
	}
	errs = append(errs, ValidateVolumeMode(path.Child("volumeMode"), spec.VolumeMode)...)
	errs = append(errs, validateDataSources(path, spec, !namesGroup(old))...)
	if name := spec.VolumeAttributesClassName; name != nil {
		errs = append(errs, ClassName(path.Child("volumeAttributesClassName"), *name)...)
	}
	return errs
}

// ClassName checks the name of a class, if there is one.
func ClassName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return validate.Invalid(path, name, validation.IsDNS1123Subdomain(name))
}

// ValidateVolumeMode checks whether a volume is a file system or a device.
func ValidateVolumeMode(path *field.Path, mode *corev1.PersistentVolumeMode) field.ErrorList {
	if mode == nil {
		return nil
	}
	return validate.Supported(path, *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

// ValidateAccessModes checks the access modes of a claim or of a volume.
func ValidateAccessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	var errs field.ErrorList
	onePod, others := false, false
	for _, mode := range modes {
		wrong := validate.Supported(path, mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
		errs = append(errs, wrong...)
		onePod = onePod || mode == corev1.ReadWriteOncePod
		others = others || len(wrong) == 0 && mode != corev1.ReadWriteOncePod
	}
	if onePod && others {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// namesGroup reports whether a data source of a claim is of a group that the claim names.
func namesGroup(spec *corev1.PersistentVolumeClaimSpec) bool {
	return spec != nil && (spec.DataSource != nil && spec.DataSource.APIGroup != nil || spec.DataSourceRef != nil && spec.DataSourceRef.APIGroup != nil)
}

// validateDataSources checks what a new volume is filled with, which two fields say. The syntax of
// groups is checked if groups is set.
func validateDataSources(path *field.Path, spec *corev1.PersistentVolumeClaimSpec, groups bool) field.ErrorList {
	var errs field.ErrorList
	source, ref := spec.DataSource, spec.DataSourceRef
	if source != nil {
		errs = append(errs, validateDataSource(path.Child("dataSource"), source.APIGroup, source.Kind, source.Name, groups)...)
	}
	if ref == nil {
		return errs
	}
	at := path.Child("dataSourceRef")
	errs = append(errs, validateDataSource(at, ref.APIGroup, ref.Kind, ref.Name, groups)...)
	namespace := define.ValueOr(ref.Namespace, "")
	if namespace != "" {
		errs = append(errs, validate.Invalid(at.Child("namespace"), namespace, validation.IsDNS1123Label(namespace))...)
	}
	// The value in the error is kube-apiserver's, which is a path and therefore empty.
	switch {
	case source == nil:
	case namespace != "":
		errs = append(errs, field.Invalid(path, struct{}{}, "may not be specified when dataSourceRef.namespace is specified"))
	case source.Kind != ref.Kind || source.Name != ref.Name || (source.APIGroup == nil) != (ref.APIGroup == nil) || define.ValueOr(source.APIGroup, "") != define.ValueOr(ref.APIGroup, ""):
		errs = append(errs, field.Invalid(path, struct{}{}, "must match dataSourceRef"))
	}
	return errs
}

const claimKind = "PersistentVolumeClaim"

func validateDataSource(path *field.Path, group *string, kind, name string, groups bool) field.ErrorList {
	errs := append(validate.Required(path.Child("name"), name), validate.Required(path.Child("kind"), kind)...)
	switch group := define.ValueOr(group, ""); {
	case group != "" && !groups:
	case group != "":
		errs = append(errs, validate.Invalid(path.Child("apiGroup"), group, validation.IsDNS1123Subdomain(group))...)
	case kind != claimKind:
		errs = append(errs, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return errs
}

// PrepareDataSources makes the two fields agree that say what a new volume is filled with
// (KEP-1495). old is the claim before; nil if it is new. The older field is dropped if it names
// what it could not name once, unless the claim has had it.
func PrepareDataSources(spec, old *corev1.PersistentVolumeClaimSpec) {
	had := old != nil && (old.DataSource != nil || old.DataSourceRef != nil)
	if !had && spec.DataSourceRef == nil && !isClaimOrSnapshot(spec.DataSource) {
		spec.DataSource = nil
	}
	switch source, ref := spec.DataSource, spec.DataSourceRef; {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: clone(source.APIGroup), Kind: source.Kind, Name: source.Name}
	case source == nil && ref != nil && define.ValueOr(ref.Namespace, "") == "":
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: clone(ref.APIGroup), Kind: ref.Kind, Name: ref.Name}
	}
}

func isClaimOrSnapshot(source *corev1.TypedLocalObjectReference) bool {
	if source == nil {
		return false
	}
	switch define.ValueOr(source.APIGroup, "") {
	case "":
		return source.Kind == claimKind
	case "snapshot.storage.k8s.io":
		return source.Kind == "VolumeSnapshot"
	}
	return false
}

func clone(s *string) *string {
	if s == nil {
		return nil
	}
	value := *s
	return &value
}

// ClaimWarnings are what a client that writes the spec of a claim should know.
func ClaimWarnings(path *field.Path, spec *corev1.PersistentVolumeClaimSpec) []string {
	warnings := fractional(path.Child("resources", "requests"), spec.Resources.Requests)
	return append(warnings, fractional(path.Child("resources", "limits"), spec.Resources.Limits)...)
}

// fractional warns of a size that is no whole number of bytes.
func fractional(path *field.Path, list corev1.ResourceList) []string {
	size, ok := list[corev1.ResourceStorage]
	if !ok || size.MilliValue()%1000 == 0 {
		return nil
	}
	return []string{path.Key(string(corev1.ResourceStorage)).String() + ": fractional byte value \"" + size.String() + "\" is invalid, must be an integer"}
}
