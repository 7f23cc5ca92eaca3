package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// volumeNames are the names of a pod's valid volumes, with what containers may do with each.
type volumeNames map[string]volumeUse

type volumeUse struct {
	block bool // as a block device
	image bool // its files are an image's
}

// validateVolumes checks a pod's volumes and returns the names of those that are valid. The name of
// the pod is part of those of the claims that its ephemeral volumes get; without it they are not known.
func validateVolumes(path *field.Path, volumes []corev1.Volume, pod string) (field.ErrorList, volumeNames) {
	var errs field.ErrorList
	created := createdClaims(volumes, pod)
	names := make(volumeNames, len(volumes))
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		wrong := validateVolume(at, v, pod)
		wrong = append(wrong, validate.RequiredSyntax(at.Child("name"), v.Name, validation.IsDNS1123Label)...)
		if _, taken := names[v.Name]; taken {
			wrong = append(wrong, field.Duplicate(at.Child("name"), v.Name))
		}
		if len(wrong) == 0 {
			names[v.Name] = volumeUse{block: v.PersistentVolumeClaim != nil || v.Ephemeral != nil, image: v.Image != nil}
		}
		errs = append(errs, wrong...)
		if claim := v.PersistentVolumeClaim; claim != nil && created.Has(claim.ClaimName) {
			errs = append(errs, field.Invalid(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, "must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return errs, names
}

// createdClaims are the names of the claims that a pod's ephemeral volumes get.
func createdClaims(volumes []corev1.Volume, pod string) sets.Set[string] {
	names := sets.New[string]()
	for i := range volumes {
		if volumes[i].Ephemeral != nil && pod != "" {
			names.Insert(claimOf(pod, volumes[i].Name))
		}
	}
	return names
}

// claimOf is the name of the claim that an ephemeral volume of a pod gets.
func claimOf(pod, volume string) string { return pod + "-" + volume }

// validateVolume checks what a volume of a pod is made of.
func validateVolume(path *field.Path, v *corev1.Volume, pod string) field.ErrorList {
	u := &union{path: path}
	member(u, "emptyDir", v.EmptyDir, validateEmptyDir)
	member(u, "hostPath", v.HostPath, validateHostPath)
	member(u, "gitRepo", v.GitRepo, validateGitRepo)
	memberAt(u, "gcePersistentDisk", "persistentDisk", v.GCEPersistentDisk, validateGCEDisk)
	member(u, "awsElasticBlockStore", v.AWSElasticBlockStore, validateEBS)
	member(u, "secret", v.Secret, validateSecret)
	member(u, "nfs", v.NFS, validateNFS)
	member(u, "iscsi", v.ISCSI, validateISCSI)
	if v.ISCSI != nil {
		u.errs = append(u.errs, tooLongForISCSI(path.Child("name"), v.Name, v.Name, v.ISCSI.TargetPortal, v.ISCSI.InitiatorName)...)
	}
	member(u, "glusterfs", v.Glusterfs, validateGlusterfs)
	member(u, "flocker", v.Flocker, validateFlocker)
	member(u, "persistentVolumeClaim", v.PersistentVolumeClaim, func(path *field.Path, c *corev1.PersistentVolumeClaimVolumeSource) field.ErrorList {
		return validate.Required(path.Child("claimName"), c.ClaimName)
	})
	member(u, "rbd", v.RBD, validateRBD)
	member(u, "cinder", v.Cinder, validateCinder)
	memberAt(u, "cephFS", "cephfs", v.CephFS, validateCephFS)
	member(u, "quobyte", v.Quobyte, validateQuobyte)
	memberAt(u, "downwarAPI", "downwardAPI", v.DownwardAPI, validateDownwardAPI) // as kube-apiserver spells it
	member(u, "fc", v.FC, validateFC)
	member(u, "flexVolume", v.FlexVolume, validateFlex)
	member(u, "configMap", v.ConfigMap, validateConfigMap)
	member(u, "azureFile", v.AzureFile, validateAzureFile)
	member(u, "vsphereVolume", v.VsphereVolume, validateVsphere)
	member(u, "photonPersistentDisk", v.PhotonPersistentDisk, validatePhoton)
	member(u, "portworxVolume", v.PortworxVolume, validatePortworx)
	member(u, "azureDisk", v.AzureDisk, validateAzureDisk)
	member(u, "storageos", v.StorageOS, validateStorageOS)
	member(u, "projected", v.Projected, validateProjected)
	member(u, "scaleIO", v.ScaleIO, validateScaleIO)
	member(u, "csi", v.CSI, validateCSI)
	member(u, "ephemeral", v.Ephemeral, func(at *field.Path, source *corev1.EphemeralVolumeSource) field.ErrorList {
		return append(validateEphemeral(at, source), validateCreatedClaim(path.Child("name"), pod, v.Name)...)
	})
	member(u, "image", v.Image, validateImageVolume)
	return u.done()
}

func validateEmptyDir(path *field.Path, v *corev1.EmptyDirVolumeSource) field.ErrorList {
	var errs field.ErrorList
	if v.SizeLimit != nil && v.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if mode := v.Mode; mode != nil && (*mode < 0 || *mode > 0o1777) {
		errs = append(errs, field.Invalid(path.Child("mode"), *mode, "must be a number between 0 and 01777 (octal), both inclusive"))
	}
	return errs
}

func validateSecret(path *field.Path, v *corev1.SecretVolumeSource) field.ErrorList {
	errs := validate.Required(path.Child("secretName"), v.SecretName)
	errs = append(errs, fileMode(path.Child("defaultMode"), v.DefaultMode)...)
	errs = append(errs, fileUser(path.Child("defaultUser"), v.DefaultUser)...)
	return append(errs, validateItems(path.Child("items"), v.Items, nil)...)
}

func validateConfigMap(path *field.Path, v *corev1.ConfigMapVolumeSource) field.ErrorList {
	errs := validate.Required(path.Child("name"), v.Name)
	errs = append(errs, fileMode(path.Child("defaultMode"), v.DefaultMode)...)
	errs = append(errs, fileUser(path.Child("defaultUser"), v.DefaultUser)...)
	return append(errs, validateItems(path.Child("items"), v.Items, nil)...)
}

// validateItems checks the choice of keys that become files. named, if it is not nil, is called for
// the name of each file.
func validateItems(path *field.Path, items []corev1.KeyToPath, named func(file string) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		item, at := &items[i], path.Index(i)
		errs = append(errs, validate.Required(at.Child("key"), item.Key)...)
		errs = append(errs, validate.Required(at.Child("path"), item.Path)...)
		errs = append(errs, fileName(at.Child("path"), item.Path)...)
		errs = append(errs, fileMode(at.Child("mode"), item.Mode)...)
		errs = append(errs, fileUser(at.Child("user"), item.User)...)
		if named != nil && item.Path != "" {
			errs = append(errs, named(item.Path)...)
		}
	}
	return errs
}

func validateDownwardAPI(path *field.Path, v *corev1.DownwardAPIVolumeSource) field.ErrorList {
	errs := fileMode(path.Child("defaultMode"), v.DefaultMode)
	errs = append(errs, fileUser(path.Child("defaultUser"), v.DefaultUser)...)
	for i := range v.Items {
		errs = append(errs, validateDownwardFile(path, &v.Items[i])...) // kube-apiserver does not say which item it is
	}
	return errs
}

func validateDownwardFile(path *field.Path, file *corev1.DownwardAPIVolumeFile) field.ErrorList {
	errs := validate.Required(path.Child("path"), file.Path)
	errs = append(errs, fileName(path.Child("path"), file.Path)...)
	switch {
	case file.FieldRef != nil:
		errs = append(errs, validateFieldRef(path.Child("fieldRef"), file.FieldRef, volumeFields)...)
		if file.ResourceFieldRef != nil {
			errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		}
	case file.ResourceFieldRef != nil:
		errs = append(errs, validateResourceRef(path.Child("resourceFieldRef"), file.ResourceFieldRef, true)...)
	default:
		errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
	}
	errs = append(errs, fileMode(path.Child("mode"), file.Mode)...)
	return append(errs, fileUser(path.Child("user"), file.User)...)
}

func validateEphemeral(path *field.Path, v *corev1.EphemeralVolumeSource) field.ErrorList {
	at := path.Child("volumeClaimTemplate")
	if v.VolumeClaimTemplate == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validate.TemplateMetadata(at.Child("metadata"), &v.VolumeClaimTemplate.ObjectMeta)
	return append(errs, ValidateClaimSpec(at.Child("spec"), &v.VolumeClaimTemplate.Spec)...)
}

// validateCreatedClaim checks the name of the claim that an ephemeral volume of a pod gets.
func validateCreatedClaim(path *field.Path, pod, volume string) field.ErrorList {
	if pod == "" || volume == "" {
		return nil
	}
	var errs field.ErrorList
	name := claimOf(pod, volume)
	for _, message := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, volume, fmt.Sprintf("PVC name %q: %s", name, message)))
	}
	return errs
}

func validateImageVolume(path *field.Path, v *corev1.ImageVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("reference"), v.Reference),
		validate.OneOf(path.Child("pullPolicy"), v.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
}

// fileName checks the place of a file in a volume: names that begin with two dots are the
// kubelet's own.
func fileName(path *field.Path, value string) field.ErrorList {
	errs := descendingPath(path, value)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		errs = append(errs, field.Invalid(path, value, "must not start with '..'"))
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

func fileUser(path *field.Path, user *int64) field.ErrorList {
	if user == nil {
		return nil
	}
	return validate.Invalid(path, *user, validation.IsValidUserID(*user))
}
