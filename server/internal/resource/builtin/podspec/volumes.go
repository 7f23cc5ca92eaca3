package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateVolumes checks a pod's volumes and returns their names.
func validateVolumes(path *field.Path, volumes []corev1.Volume) (field.ErrorList, sets.Set[string]) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), v.Name, validation.IsDNS1123Label)...)
		if names.Has(v.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		names.Insert(v.Name)
		errs = append(errs, validateVolumeSource(at, v)...)
	}
	return errs, names
}

func validateVolumeSource(path *field.Path, v *corev1.Volume) field.ErrorList {
	switch sources := validate.SetMembers(v.VolumeSource); {
	case len(sources) == 0:
		return field.ErrorList{field.Required(path, "must specify a volume type")}
	case len(sources) > 1:
		return field.ErrorList{field.Forbidden(path.Child(sources[1]), "may not specify more than 1 volume type")}
	}
	return validateSource(path, &v.VolumeSource)
}

// validateSource checks the one source of a volume that is set. Those of
// storage systems that have left Kubernetes are not looked into.
func validateSource(path *field.Path, v *corev1.VolumeSource) field.ErrorList {
	switch {
	case v.HostPath != nil:
		return validateHostPath(path.Child("hostPath"), v.HostPath)
	case v.Secret != nil:
		at := path.Child("secret")
		errs := append(validate.Required(at.Child("secretName"), v.Secret.SecretName), fileMode(at.Child("defaultMode"), v.Secret.DefaultMode)...)
		return append(errs, validateItems(at.Child("items"), v.Secret.Items)...)
	case v.ConfigMap != nil:
		at := path.Child("configMap")
		errs := append(validate.Required(at.Child("name"), v.ConfigMap.Name), fileMode(at.Child("defaultMode"), v.ConfigMap.DefaultMode)...)
		return append(errs, validateItems(at.Child("items"), v.ConfigMap.Items)...)
	case v.DownwardAPI != nil:
		at := path.Child("downwardAPI")
		return append(fileMode(at.Child("defaultMode"), v.DownwardAPI.DefaultMode), validateDownwardItems(at.Child("items"), v.DownwardAPI.Items)...)
	case v.Projected != nil:
		return validateProjected(path.Child("projected"), v.Projected)
	case v.PersistentVolumeClaim != nil:
		return validate.Required(path.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName)
	case v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil:
		return validate.NotNegativeQuantity(path.Child("emptyDir", "sizeLimit"), *v.EmptyDir.SizeLimit)
	case v.NFS != nil:
		return validateNFS(path.Child("nfs"), v.NFS)
	case v.CSI != nil:
		return validate.Required(path.Child("csi", "driver"), v.CSI.Driver)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate == nil:
		return field.ErrorList{field.Required(path.Child("ephemeral", "volumeClaimTemplate"), "")}
	case v.Ephemeral != nil:
		return ValidateClaimSpec(path.Child("ephemeral", "volumeClaimTemplate", "spec"), &v.Ephemeral.VolumeClaimTemplate.Spec)
	}
	return nil
}

func validateHostPath(path *field.Path, v *corev1.HostPathVolumeSource) field.ErrorList {
	errs := validate.NoParentDir(path.Child("path"), v.Path)
	if v.Type != nil && *v.Type != corev1.HostPathUnset {
		errs = append(errs, validate.OneOf(path.Child("type"), *v.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
			corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
	}
	return errs
}

func validateNFS(path *field.Path, v *corev1.NFSVolumeSource) field.ErrorList {
	errs := validate.Required(path.Child("server"), v.Server)
	if v.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	if !strings.HasPrefix(v.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), v.Path, "must be an absolute path"))
	}
	return errs
}

// validateItems checks the choice of keys that become files.
func validateItems(path *field.Path, items []corev1.KeyToPath) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := path.Index(i)
		errs = append(errs, validate.Required(at.Child("key"), item.Key)...)
		errs = append(errs, validate.Required(at.Child("path"), item.Path)...)
		errs = append(errs, descendingPath(at.Child("path"), item.Path)...)
		errs = append(errs, fileMode(at.Child("mode"), item.Mode)...)
	}
	return errs
}

func validateDownwardItems(path *field.Path, items []corev1.DownwardAPIVolumeFile) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		at := path.Index(i)
		errs = append(errs, validate.Required(at.Child("path"), item.Path)...)
		errs = append(errs, descendingPath(at.Child("path"), item.Path)...)
		errs = append(errs, fileMode(at.Child("mode"), item.Mode)...)
		switch {
		case item.FieldRef != nil && item.ResourceFieldRef != nil:
			errs = append(errs, field.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRef(at.Child("fieldRef"), item.FieldRef, volumeFields)...)
		case item.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(at.Child("resourceFieldRef"), item.ResourceFieldRef, true)...)
		default:
			errs = append(errs, field.Required(at.Child("fieldRef"), "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// minTokenSeconds is the shortest life of a token in a volume.
const minTokenSeconds int64 = 600

func validateProjected(path *field.Path, v *corev1.ProjectedVolumeSource) field.ErrorList {
	errs := fileMode(path.Child("defaultMode"), v.DefaultMode)
	for i, source := range v.Sources {
		at := path.Child("sources").Index(i)
		switch sources := validate.SetMembers(source); {
		case len(sources) == 0:
			errs = append(errs, field.Required(at, "must specify one of secret, downwardAPI, configMap, serviceAccountToken, clusterTrustBundle or podCertificate"))
			continue
		case len(sources) > 1:
			errs = append(errs, field.Forbidden(at.Child(sources[1]), "may not specify more than 1 volume type"))
			continue
		}
		switch {
		case source.Secret != nil:
			errs = append(errs, validate.Required(at.Child("secret", "name"), source.Secret.Name)...)
			errs = append(errs, validateItems(at.Child("secret", "items"), source.Secret.Items)...)
		case source.ConfigMap != nil:
			errs = append(errs, validate.Required(at.Child("configMap", "name"), source.ConfigMap.Name)...)
			errs = append(errs, validateItems(at.Child("configMap", "items"), source.ConfigMap.Items)...)
		case source.DownwardAPI != nil:
			errs = append(errs, validateDownwardItems(at.Child("downwardAPI", "items"), source.DownwardAPI.Items)...)
		case source.ServiceAccountToken != nil:
			token := at.Child("serviceAccountToken")
			errs = append(errs, validate.Required(token.Child("path"), source.ServiceAccountToken.Path)...)
			if s := define.ValueOr(source.ServiceAccountToken.ExpirationSeconds, minTokenSeconds); s < minTokenSeconds || s > 1<<32 {
				errs = append(errs, field.Invalid(token.Child("expirationSeconds"), s, "may not specify a duration less than 10 minutes or larger than 2^32 seconds"))
			}
		}
	}
	return errs
}

// descendingPath: a relative path that stays where it is.
func descendingPath(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	var errs field.ErrorList
	if strings.HasPrefix(value, "/") {
		errs = append(errs, field.Invalid(path, value, "must be a relative path"))
	}
	return append(errs, validate.NoParentDir(path, value)...)
}

func fileMode(path *field.Path, mode *int32) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}
