package podspec

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Storage systems, most of which have left Kubernetes: their fields are still checked. The
// sources of pods' volumes and of PersistentVolumes differ in how they name secrets.

func validateHostPath(path *field.Path, v *corev1.HostPathVolumeSource) field.ErrorList {
	if v.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := validate.NoParentDir(path.Child("path"), v.Path)
	if v.Type != nil {
		errs = append(errs, validate.Supported(path.Child("type"), *v.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
			corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
	}
	return errs
}

func validateNFS(path *field.Path, v *corev1.NFSVolumeSource) field.ErrorList {
	errs := validate.Required(path.Child("server"), v.Server)
	errs = append(errs, validate.Required(path.Child("path"), v.Path)...)
	if !strings.HasPrefix(v.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), v.Path, "must be an absolute path"))
	}
	return errs
}

func validateGitRepo(path *field.Path, v *corev1.GitRepoVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("repository"), v.Repository), descendingPath(path.Child("directory"), v.Directory)...)
}

// maxPartition is the highest number of a disk's partition, and of a unit of a target.
const maxPartition = 255

func partition(path *field.Path, n int32) field.ErrorList {
	if n < 0 || n > maxPartition {
		return field.ErrorList{field.Invalid(path, n, validation.InclusiveRangeError(1, maxPartition))}
	}
	return nil
}

func logicalUnit(path *field.Path, n int32) field.ErrorList {
	if n < 0 || n > maxPartition {
		return field.ErrorList{field.Invalid(path, n, validation.InclusiveRangeError(0, maxPartition))}
	}
	return nil
}

func validateGCEDisk(path *field.Path, v *corev1.GCEPersistentDiskVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("pdName"), v.PDName), partition(path.Child("partition"), v.Partition)...)
}

func validateEBS(path *field.Path, v *corev1.AWSElasticBlockStoreVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("volumeID"), v.VolumeID), partition(path.Child("partition"), v.Partition)...)
}

// The three ways to name a node of iSCSI.
var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.[0-9]{4}-[0-9]{2}\.[-.0-9A-Za-z]+:[^,;*&$|\s]+$`),
	"eui": regexp.MustCompile(`^eui.[0-9A-Za-z]{16}$`),
	"naa": regexp.MustCompile(`^naa.[0-9A-Za-z]{32}$`),
}

// iscsiName checks the name of a target or of an initiator. unknown is what is wrong with one that
// begins in none of the three ways.
func iscsiName(path *field.Path, name, unknown string) field.ErrorList {
	if len(name) < 3 || iscsiNames[name[:3]] == nil {
		return field.ErrorList{field.Invalid(path, name, unknown)}
	}
	if !iscsiNames[name[:3]].MatchString(name) {
		return field.ErrorList{field.Invalid(path, name, "must be valid format")}
	}
	return nil
}

func validateISCSI(path *field.Path, v *corev1.ISCSIVolumeSource) field.ErrorList {
	const unknown = "must be valid format starting with iqn, eui, or naa"
	errs := validate.Required(path.Child("targetPortal"), v.TargetPortal)
	errs = append(errs, iscsiTarget(path, v.IQN, v.Lun, unknown)...)
	if (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if v.InitiatorName != nil {
		errs = append(errs, iscsiName(path.Child("initiatorname"), *v.InitiatorName, unknown)...)
	}
	return errs
}

func iscsiTarget(path *field.Path, name string, lun int32, unknown string) field.ErrorList {
	at := path.Child("iqn")
	errs := validate.Required(at, name)
	if name != "" {
		errs = iscsiName(at, name, unknown)
	}
	return append(errs, logicalUnit(path.Child("lun"), lun)...)
}

func validateFC(path *field.Path, v *corev1.FCVolumeSource) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("targetWWNs")
	switch {
	case len(v.TargetWWNs)+len(v.WWIDs) == 0:
		errs = append(errs, field.Required(at, "must specify either targetWWNs or wwids, but not both"))
	case len(v.TargetWWNs) > 0 && len(v.WWIDs) > 0:
		errs = append(errs, field.Invalid(at, v.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	switch {
	case len(v.TargetWWNs) == 0:
	case v.Lun == nil:
		errs = append(errs, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
	default:
		errs = append(errs, logicalUnit(path.Child("lun"), *v.Lun)...)
	}
	return errs
}

func validateGlusterfs(path *field.Path, v *corev1.GlusterfsVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("endpoints"), v.EndpointsName), validate.Required(path.Child("path"), v.Path)...)
}

func validateFlocker(path *field.Path, v *corev1.FlockerVolumeSource) field.ErrorList {
	var errs field.ErrorList
	switch {
	case v.DatasetName == "" && v.DatasetUUID == "":
		errs = append(errs, field.Required(path, "one of datasetName and datasetUUID is required"))
	case v.DatasetName != "" && v.DatasetUUID != "":
		errs = append(errs, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(v.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), v.DatasetName, "must not contain '/'"))
	}
	return errs
}

func validateQuobyte(path *field.Path, v *corev1.QuobyteVolumeSource) field.ErrorList {
	const registries, maxTenant = "must be a host:port pair or multiple pairs separated by commas", 64
	var errs field.ErrorList
	switch {
	case v.Registry == "":
		errs = append(errs, field.Required(path.Child("registry"), registries))
	case len(v.Tenant) > maxTenant:
		errs = append(errs, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for registry := range strings.SplitSeq(v.Registry, ",") {
			if _, _, err := net.SplitHostPort(registry); err != nil {
				errs = append(errs, field.Invalid(path.Child("registry"), v.Registry, registries))
			}
		}
	}
	return append(errs, validate.Required(path.Child("volume"), v.Volume)...)
}

// monitors checks where the monitors of Ceph are.
func monitors(path *field.Path, list []string) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path.Child("monitors"), "")}
	}
	return nil
}

func validateCephFS(path *field.Path, v *corev1.CephFSVolumeSource) field.ErrorList {
	return monitors(path, v.Monitors)
}

func validateRBD(path *field.Path, v *corev1.RBDVolumeSource) field.ErrorList {
	return append(monitors(path, v.CephMonitors), validate.Required(path.Child("image"), v.RBDImage)...)
}

func validateCinder(path *field.Path, v *corev1.CinderVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("volumeID"), v.VolumeID), secretName(path, v.SecretRef)...)
}

func secretName(path *field.Path, ref *corev1.LocalObjectReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	return validate.Required(path.Child("secretRef", "name"), ref.Name)
}

func validateFlex(path *field.Path, v *corev1.FlexVolumeSource) field.ErrorList {
	return flexDriver(path, v.Driver, v.Options)
}

// flexDriver checks a driver and its options, among which Kubernetes' own must not be.
func flexDriver(path *field.Path, driver string, options map[string]string) field.ErrorList {
	errs := validate.Required(path.Child("driver"), driver)
	for _, key := range slices.Sorted(maps.Keys(options)) {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureFile(path *field.Path, v *corev1.AzureFileVolumeSource) field.ErrorList {
	return append(validate.Required(path.Child("secretName"), v.SecretName), validate.Required(path.Child("shareName"), v.ShareName)...)
}

func validateAzureDisk(path *field.Path, v *corev1.AzureDiskVolumeSource) field.ErrorList {
	errs := append(validate.Required(path.Child("diskName"), v.DiskName), validate.Required(path.Child("diskURI"), v.DataDiskURI)...)
	if v.CachingMode != nil {
		errs = append(errs, validate.Supported(path.Child("cachingMode"), *v.CachingMode,
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	if v.Kind == nil {
		return errs
	}
	errs = append(errs, validate.Supported(path.Child("kind"), *v.Kind, corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk)...)
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *v.Kind == corev1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(v.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), v.DataDiskURI, []string{form}))
	}
	return errs
}

func validateVsphere(path *field.Path, v *corev1.VsphereVirtualDiskVolumeSource) field.ErrorList {
	return validate.Required(path.Child("volumePath"), v.VolumePath)
}

func validatePhoton(path *field.Path, v *corev1.PhotonPersistentDiskVolumeSource) field.ErrorList {
	return validate.Required(path.Child("pdID"), v.PdID)
}

func validatePortworx(path *field.Path, v *corev1.PortworxVolumeSource) field.ErrorList {
	return validate.Required(path.Child("volumeID"), v.VolumeID)
}

func validateScaleIO(path *field.Path, v *corev1.ScaleIOVolumeSource) field.ErrorList {
	return scaleIOVolume(path, v.Gateway, v.System, v.VolumeName)
}

func scaleIOVolume(path *field.Path, gateway, system, volume string) field.ErrorList {
	return slices.Concat(validate.Required(path.Child("gateway"), gateway), validate.Required(path.Child("system"), system),
		validate.Required(path.Child("volumeName"), volume))
}

func validateStorageOS(path *field.Path, v *corev1.StorageOSVolumeSource) field.ErrorList {
	return append(storageOSVolume(path, v.VolumeName, v.VolumeNamespace), secretName(path, v.SecretRef)...)
}

func storageOSVolume(path *field.Path, name, namespace string) field.ErrorList {
	errs := validate.RequiredSyntax(path.Child("volumeName"), name, validation.IsDNS1123Label)
	if namespace != "" {
		errs = append(errs, validate.Invalid(path.Child("volumeNamespace"), namespace, validation.IsDNS1123Label(namespace))...)
	}
	return errs
}

// maxCSIDriver bounds the name of a driver.
const maxCSIDriver = 63

// CSIDriverName checks the name of a CSI driver, in which capitals may be.
func CSIDriverName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if len(name) > maxCSIDriver {
		errs = append(errs, field.TooLong(path, "", maxCSIDriver))
	}
	return append(errs, validate.Invalid(path, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}

func validateCSI(path *field.Path, v *corev1.CSIVolumeSource) field.ErrorList {
	errs := CSIDriverName(path.Child("driver"), v.Driver)
	switch ref := v.NodePublishSecretRef; {
	case ref == nil:
	case ref.Name == "":
		errs = append(errs, field.Required(path.Child("nodePublishSecretRef", "name"), ""))
	default:
		errs = append(errs, validate.Invalid(path.Child("name"), ref.Name, validation.IsDNS1123Subdomain(ref.Name))...)
	}
	return errs
}

// tooLongForISCSI: the path of an iSCSI device is made of names.
func tooLongForISCSI(at *field.Path, value, volume, portal string, initiator *string) field.ErrorList {
	const most = 64
	if initiator == nil || len(volume)+len(":")+len(portal) <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.")}
}
