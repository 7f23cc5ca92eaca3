package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateMounts checks where a container has its volumes, as files and as devices. Some paths
// lack the index: they are kube-apiserver's.
func validateMounts(path *field.Path, c *corev1.Container, volumes volumeNames) field.ErrorList {
	var errs field.ErrorList
	list := path.Child("volumeMounts")
	points := sets.New[string]()
	devices := placesOf(c.VolumeDevices, func(d *corev1.VolumeDevice) (name, path string) { return d.Name, d.DevicePath })
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], list.Index(i)
		errs = append(errs, validate.Required(at.Child("name"), m.Name)...)
		if _, known := volumes[m.Name]; !known {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		errs = append(errs, validate.Required(at.Child("mountPath"), m.MountPath)...)
		if points.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points.Insert(m.MountPath)
		if devices.names.Has(m.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "must not already exist in volumeDevices"))
		}
		if devices.paths.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices"))
		}
		if m.SubPath != "" {
			errs = append(errs, descendingPath(list.Child("subPath"), m.SubPath)...)
		}
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		if m.SubPathExpr != "" {
			errs = append(errs, descendingPath(list.Child("subPathExpr"), m.SubPathExpr)...)
		}
		if m.MountPropagation != nil {
			errs = append(errs, mountPropagation(list.Child("mountPropagation"), *m.MountPropagation, c)...)
		}
		if m.RecursiveReadOnly != nil {
			errs = append(errs, recursiveReadOnly(list.Child("recursiveReadOnly"), m)...)
		}
		if len(m.BindMountOptions) > 0 {
			errs = append(errs, bindMountOptions(at.Child("bindMountOptions"), m.BindMountOptions, volumes[m.Name])...)
		}
	}
	if len(c.VolumeDevices) == 0 {
		return errs
	}
	return append(errs, validateDevices(path.Child("volumeDevices"), c, volumes)...)
}

// places are the names and the paths of volumes in a container.
type places struct{ names, paths sets.Set[string] }

func placesOf[T any](list []T, of func(*T) (name, path string)) places {
	if len(list) == 0 {
		return places{} // an empty set
	}
	all := places{make(sets.Set[string], len(list)), make(sets.Set[string], len(list))}
	for i := range list {
		name, path := of(&list[i])
		all.names.Insert(name)
		all.paths.Insert(path)
	}
	return all
}

func validateDevices(path *field.Path, c *corev1.Container, volumes volumeNames) field.ErrorList {
	var errs field.ErrorList
	names, paths := sets.New[string](), sets.New[string]()
	mounts := placesOf(c.VolumeMounts, func(m *corev1.VolumeMount) (name, path string) { return m.Name, m.MountPath })
	for i, d := range c.VolumeDevices {
		at := path.Index(i)
		errs = append(errs, validate.Required(at.Child("name"), d.Name)...)
		if names.Has(d.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must be unique"))
		}
		switch use, known := volumes[d.Name]; {
		case !known:
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		case !use.block:
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		errs = append(errs, validate.Required(at.Child("devicePath"), d.DevicePath)...)
		if paths.Has(d.DevicePath) {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "must be unique"))
		}
		if d.DevicePath != "" && len(validate.NoParentDir(at, d.DevicePath)) > 0 {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "can not contain backsteps ('..')"))
		} else {
			paths.Insert(d.DevicePath)
		}
		if mounts.names.Has(d.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must not already exist in volumeMounts"))
		}
		if mounts.paths.Has(d.DevicePath) {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts"))
		}
		if d.Name != "" {
			names.Insert(d.Name)
		}
	}
	return errs
}

// mountPropagation: only a privileged container may show its mounts to its
// host.
func mountPropagation(path *field.Path, mode corev1.MountPropagationMode, c *corev1.Container) field.ErrorList {
	errs := validate.Supported(path, mode, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := c.SecurityContext != nil && define.ValueOr(c.SecurityContext.Privileged, false)
	if mode == corev1.MountPropagationBidirectional && !privileged {
		errs = append(errs, field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))
	}
	return errs
}

// recursiveReadOnly: what is below a mount can only be read if the mount itself can only be.
func recursiveReadOnly(path *field.Path, m *corev1.VolumeMount) field.ErrorList {
	errs := validate.Supported(path, *m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)
	if len(errs) > 0 || *m.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return errs
	}
	if !m.ReadOnly {
		errs = append(errs, field.Forbidden(path, "may only be specified when readOnly is true"))
	}
	if define.ValueOr(m.MountPropagation, corev1.MountPropagationNone) != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(path, "may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

// bindMountOptions: each at most once, and none of a volume that is an image.
func bindMountOptions(path *field.Path, options []string, use volumeUse) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, option := range options {
		at := path.Index(i)
		errs = append(errs, validate.Supported(at, option, string(corev1.BindMountOptionNoDev), string(corev1.BindMountOptionNoExec), string(corev1.BindMountOptionNoSUID))...)
		if seen.Has(option) {
			errs = append(errs, field.Duplicate(at, option))
		}
		seen.Insert(option)
	}
	if use.image {
		errs = append(errs, field.Invalid(path, options, "bindMountOptions may not be used with image volumes"))
	}
	return errs
}
