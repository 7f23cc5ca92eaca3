package podspec

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// ValidatePersistentSource checks what a PersistentVolume is made of. It must be one source, but
// for flexVolume, beside which kube-apiserver allows one that comes before it.
func ValidatePersistentSource(path *field.Path, v *corev1.PersistentVolume) field.ErrorList {
	s := &v.Spec.PersistentVolumeSource
	u := &union{path: path}
	member(u, "hostPath", s.HostPath, validateHostPath)
	memberAt(u, "gcePersistentDisk", "persistentDisk", s.GCEPersistentDisk, validateGCEDisk)
	member(u, "awsElasticBlockStore", s.AWSElasticBlockStore, validateEBS)
	member(u, "glusterfs", s.Glusterfs, validatePersistentGlusterfs)
	member(u, "flocker", s.Flocker, validateFlocker)
	member(u, "nfs", s.NFS, validateNFS)
	member(u, "rbd", s.RBD, func(path *field.Path, s *corev1.RBDPersistentVolumeSource) field.ErrorList {
		return append(monitors(path, s.CephMonitors), validate.Required(path.Child("image"), s.RBDImage)...)
	})
	member(u, "quobyte", s.Quobyte, validateQuobyte)
	memberAt(u, "cephFS", "cephfs", s.CephFS, func(path *field.Path, s *corev1.CephFSPersistentVolumeSource) field.ErrorList {
		return monitors(path, s.Monitors)
	})
	member(u, "iscsi", s.ISCSI, func(path *field.Path, s *corev1.ISCSIPersistentVolumeSource) field.ErrorList {
		return validatePersistentISCSI(path, s, v.Name)
	})
	member(u, "cinder", s.Cinder, func(path *field.Path, s *corev1.CinderPersistentVolumeSource) field.ErrorList {
		return append(validate.Required(path.Child("volumeID"), s.VolumeID), secretReference(path.Child("secretRef"), s.SecretRef)...)
	})
	member(u, "fc", s.FC, validateFC)
	if s.FlexVolume != nil {
		u.set = true
		u.errs = append(u.errs, flexDriver(path.Child("flexVolume"), s.FlexVolume.Driver, s.FlexVolume.Options)...)
	}
	member(u, "azureFile", s.AzureFile, validatePersistentAzureFile)
	member(u, "vsphereVolume", s.VsphereVolume, validateVsphere)
	member(u, "photonPersistentDisk", s.PhotonPersistentDisk, validatePhoton)
	member(u, "portworxVolume", s.PortworxVolume, validatePortworx)
	member(u, "azureDisk", s.AzureDisk, validateAzureDisk)
	member(u, "scaleIO", s.ScaleIO, func(path *field.Path, s *corev1.ScaleIOPersistentVolumeSource) field.ErrorList {
		return scaleIOVolume(path, s.Gateway, s.System, s.VolumeName)
	})
	member(u, "local", s.Local, func(at *field.Path, s *corev1.LocalVolumeSource) field.ErrorList {
		errs := validate.NoParentDir(at.Child("path"), s.Path)
		if v.Spec.NodeAffinity == nil {
			errs = append(errs, field.Required(path.Child("nodeAffinity"), "Local volume requires node affinity"))
		}
		return errs
	})
	member(u, "storageos", s.StorageOS, validatePersistentStorageOS)
	member(u, "csi", s.CSI, validatePersistentCSI)
	return u.done()
}

// ValidateInlineVolume checks a volume that an attachment describes in place of a PersistentVolume:
// of a driver, and without what only concerns the binding of a volume to a claim.
func ValidateInlineVolume(path *field.Path, spec *corev1.PersistentVolumeSpec) field.ErrorList {
	const context = " in the context of inline volumes"
	var errs field.ErrorList
	forbid := func(name string, given bool) {
		if given {
			errs = append(errs, field.Forbidden(path.Child(name), "may not be specified"+context))
		}
	}
	forbid("claimRef", spec.ClaimRef != nil)
	forbid("capacity", len(spec.Capacity) > 0)
	if spec.CSI == nil {
		errs = append(errs, field.Required(path.Child("csi"), "has to be specified"+context))
	}
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), ""))
	}
	errs = append(errs, ValidateAccessModes(path.Child("accessModes"), spec.AccessModes)...)
	reclaim, at := spec.PersistentVolumeReclaimPolicy, path.Child("persistentVolumeReclaimPolicy")
	if reclaim != "" && reclaim != corev1.PersistentVolumeReclaimRetain {
		errs = append(errs, field.Forbidden(at, "may only be "+string(corev1.PersistentVolumeReclaimRetain)+context))
	}
	forbid("nodeAffinity", spec.NodeAffinity != nil)
	// A local volume needs the affinity that an inline one may not have.
	errs = append(errs, ValidatePersistentSource(path, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: spec.PersistentVolumeSource}})...)
	errs = append(errs, ValidateRecycledHost(path, spec)...)
	forbid("storageClassName", spec.StorageClassName != "")
	if mode := spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		errs = append(errs, field.Forbidden(path.Child("volumeMode"), "may not specify volumeMode other than "+string(corev1.PersistentVolumeFilesystem)+context))
	}
	return errs
}

// ValidateRecycledHost refuses to have all files of a host deleted.
func ValidateRecycledHost(at *field.Path, spec *corev1.PersistentVolumeSpec) field.ErrorList {
	if spec.HostPath == nil || path.Clean(spec.HostPath.Path) != "/" || spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRecycle {
		return nil
	}
	return field.ErrorList{field.Forbidden(at.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")}
}

func validatePersistentGlusterfs(path *field.Path, v *corev1.GlusterfsPersistentVolumeSource) field.ErrorList {
	errs := append(validate.Required(path.Child("endpoints"), v.EndpointsName), validate.Required(path.Child("path"), v.Path)...)
	at := path.Child("endpointsNamespace")
	switch namespace := v.EndpointsNamespace; {
	case namespace == nil:
	case *namespace == "":
		errs = append(errs, field.Invalid(at, "", "if the endpointnamespace is set, it must be a valid namespace name"))
	default:
		errs = append(errs, validate.Invalid(at, *namespace, validation.IsDNS1123Label(*namespace))...)
	}
	return errs
}

func validatePersistentISCSI(path *field.Path, v *corev1.ISCSIPersistentVolumeSource, volume string) field.ErrorList {
	const unknown = "must be valid format"
	errs := validate.Required(path.Child("targetPortal"), v.TargetPortal)
	errs = append(errs, tooLongForISCSI(path.Child("targetportal"), v.TargetPortal, volume, v.TargetPortal, v.InitiatorName)...)
	errs = append(errs, iscsiTarget(path, v.IQN, v.Lun, unknown)...)
	if (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if v.SecretRef != nil {
		errs = append(errs, validate.Required(path.Child("secretRef", "name"), v.SecretRef.Name)...)
	}
	if v.InitiatorName != nil {
		errs = append(errs, iscsiName(path.Child("initiatorname"), *v.InitiatorName, unknown)...)
	}
	return errs
}

func validatePersistentAzureFile(path *field.Path, v *corev1.AzureFilePersistentVolumeSource) field.ErrorList {
	errs := append(validate.Required(path.Child("secretName"), v.SecretName), validate.Required(path.Child("shareName"), v.ShareName)...)
	if v.SecretNamespace != nil {
		errs = append(errs, validate.Required(path.Child("secretNamespace"), *v.SecretNamespace)...)
	}
	return errs
}

func validatePersistentStorageOS(path *field.Path, v *corev1.StorageOSPersistentVolumeSource) field.ErrorList {
	errs := storageOSVolume(path, v.VolumeName, v.VolumeNamespace)
	if ref := v.SecretRef; ref != nil {
		errs = append(errs, validate.Required(path.Child("secretRef", "name"), ref.Name)...)
		errs = append(errs, validate.Required(path.Child("secretRef", "namespace"), ref.Namespace)...)
	}
	return errs
}

func secretReference(path *field.Path, ref *corev1.SecretReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	return append(validate.Required(path.Child("name"), ref.Name), validate.Required(path.Child("namespace"), ref.Namespace)...)
}

func validatePersistentCSI(path *field.Path, v *corev1.CSIPersistentVolumeSource) field.ErrorList {
	errs := CSIDriverName(path.Child("driver"), v.Driver)
	errs = append(errs, validate.Required(path.Child("volumeHandle"), v.VolumeHandle)...)
	for _, secret := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", v.ControllerPublishSecretRef}, {"controllerExpandSecretRef", v.ControllerExpandSecretRef},
		{"nodePublishSecretRef", v.NodePublishSecretRef}, {"nodeExpandSecretRef", v.NodeExpandSecretRef},
	} {
		if secret.ref == nil {
			continue
		}
		at := path.Child(secret.name)
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), secret.ref.Name, validation.IsDNS1123Subdomain)...)
		errs = append(errs, validate.RequiredSyntax(at.Child("namespace"), secret.ref.Namespace, validation.IsDNS1123Label)...)
	}
	return errs
}

// DefaultPersistentSource completes what a PersistentVolume is made of.
func DefaultPersistentSource(s *corev1.PersistentVolumeSource) {
	complete(s.HostPath, defaultHostPath)
	complete(s.RBD, func(s *corev1.RBDPersistentVolumeSource) { defaultRBD(&s.RBDPool, &s.RadosUser, &s.Keyring) })
	complete(s.ISCSI, func(s *corev1.ISCSIPersistentVolumeSource) {
		define.SetDefault(&s.ISCSIInterface, defaultISCSIInterface)
	})
	complete(s.AzureDisk, defaultAzureDisk)
	complete(s.ScaleIO, func(s *corev1.ScaleIOPersistentVolumeSource) { defaultScaleIO(&s.StorageMode, &s.FSType) })
}

// TakesMountOptions reports whether an annotation may say with which options a volume is mounted.
func TakesMountOptions(s *corev1.PersistentVolumeSource) bool {
	return s.GCEPersistentDisk != nil || s.AWSElasticBlockStore != nil || s.Glusterfs != nil || s.NFS != nil || s.RBD != nil ||
		s.Quobyte != nil || s.ISCSI != nil || s.Cinder != nil || s.CephFS != nil || s.AzureFile != nil || s.VsphereVolume != nil ||
		s.AzureDisk != nil || s.PhotonPersistentDisk != nil
}

// PersistentSourceWarnings names the sources that nothing can use any more.
func PersistentSourceWarnings(path *field.Path, s *corev1.PersistentVolumeSource) []string {
	var warnings []string
	warn := func(name string, set bool, since string) {
		if set {
			warnings = append(warnings, path.Child(name).String()+": deprecated in "+since+"+")
		}
	}
	warn("cephfs", s.CephFS != nil, "v1.28, non-functional in v1.31")
	warn("photonPersistentDisk", s.PhotonPersistentDisk != nil, "v1.11, non-functional in v1.16")
	warn("scaleIO", s.ScaleIO != nil, "v1.16, non-functional in v1.22")
	warn("storageOS", s.StorageOS != nil, "v1.22, non-functional in v1.25")
	warn("glusterfs", s.Glusterfs != nil, "v1.25, non-functional in v1.26")
	warn("rbd", s.RBD != nil, "v1.28, non-functional in v1.31")
	return warnings
}
