package builtin

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes checks a pod's volumes and returns their names.
func validateVolumes(path *field.Path, volumes []corev1.Volume) (field.ErrorList, sets.Set[string]) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		errs = append(errs, requiredSyntax(at.Child("name"), v.Name, validation.IsDNS1123Label)...)
		if names.Has(v.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		names.Insert(v.Name)
		errs = append(errs, validateVolumeSource(at, v)...)
	}
	return errs, names
}

func validateVolumeSource(path *field.Path, v *corev1.Volume) field.ErrorList {
	switch sources := sourcesOf(v.VolumeSource); {
	case len(sources) == 0:
		return field.ErrorList{field.Required(path, "must specify a volume type")}
	case len(sources) > 1:
		return field.ErrorList{field.Forbidden(path.Child(sources[1]), "may not specify more than 1 volume type")}
	}
	switch {
	case v.HostPath != nil:
		return absentDots(path.Child("hostPath", "path"), v.HostPath.Path)
	case v.Secret != nil:
		return append(required(path.Child("secret", "secretName"), v.Secret.SecretName),
			fileMode(path.Child("secret", "defaultMode"), v.Secret.DefaultMode)...)
	case v.ConfigMap != nil:
		return append(required(path.Child("configMap", "name"), v.ConfigMap.Name),
			fileMode(path.Child("configMap", "defaultMode"), v.ConfigMap.DefaultMode)...)
	case v.PersistentVolumeClaim != nil:
		return required(path.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName)
	case v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil:
		return notNegativeQuantity(path.Child("emptyDir", "sizeLimit"), *v.EmptyDir.SizeLimit)
	case v.NFS != nil:
		return append(required(path.Child("nfs", "server"), v.NFS.Server), required(path.Child("nfs", "path"), v.NFS.Path)...)
	case v.CSI != nil:
		return required(path.Child("csi", "driver"), v.CSI.Driver)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate == nil:
		return field.ErrorList{field.Required(path.Child("ephemeral", "volumeClaimTemplate"), "")}
	case v.Ephemeral != nil:
		return validateClaimSpec(path.Child("ephemeral", "volumeClaimTemplate", "spec"), &v.Ephemeral.VolumeClaimTemplate.Spec)
	}
	return nil
}

// sourcesOf returns the JSON names of the members that are set in a struct
// of pointers, of which exactly one should be.
func sourcesOf(union any) []string {
	var names []string
	value := reflect.ValueOf(union)
	for i := range value.NumField() {
		if f := value.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// absentDots checks a path on the host: there must be one, and it must not
// climb.
func absentDots(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(path, value, "must not contain '..'")}
		}
	}
	return nil
}

func fileMode(path *field.Path, mode *int32) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}
