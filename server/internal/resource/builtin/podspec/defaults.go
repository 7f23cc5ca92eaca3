package podspec

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

const (
	// DefaultGraceSeconds is how long a pod may take to end, unless it says so.
	DefaultGraceSeconds int64 = 30
	defaultVolumeMode   int32 = 0o644
	defaultTokenSeconds int64 = 3600
)

// Default completes a pod spec, in a pod or in a template.
func Default(spec *corev1.PodSpec) {
	define.SetDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	define.SetDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	define.SetDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	define.SetDefaultPtr(&spec.TerminationGracePeriodSeconds, DefaultGraceSeconds)
	define.SetDefaultPtr(&spec.SecurityContext, corev1.PodSecurityContext{})
	// The old name of the field is kept equal to the new one.
	define.SetDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName

	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		defaultContainer(&c)
		spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	roundAmounts(spec)
}

func defaultContainer(c *corev1.Container) {
	define.SetDefault(&c.ImagePullPolicy, defaultPullPolicy(c.Image))
	define.SetDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	define.SetDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		define.SetDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			define.SetDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

// defaultPullPolicy is Always for an image whose tag is latest, which it is if there is neither tag nor
// digest. The names that cannot be are those of github.com/distribution/reference.
func defaultPullPolicy(image string) corev1.PullPolicy {
	reference, digest, digested := strings.Cut(image, "@")
	slash := strings.LastIndexByte(reference, '/')
	name, tag, tagged := strings.Cut(reference[slash+1:], ":") // a colon before the slash is a registry's port
	latest := tag == "latest" || !tagged && !digested
	if !latest || digested && !imageDigest.MatchString(digest) || imageID.MatchString(image) || !isRepository(reference[:slash+1]+name) {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

// isRepository reports whether the name of an image, without its tag, can be one. A registry may
// stand before it.
func isRepository(name string) bool {
	const most = 255
	if registry, rest, ok := strings.Cut(name, "/"); ok && (strings.ContainsAny(registry, ".:") || registry == "localhost" || strings.ToLower(registry) != registry) {
		if !registryName.MatchString(registry) {
			return false
		}
		name = rest
	}
	return len(name) <= most && repositoryName.MatchString(name)
}

var (
	registryName   = regexp.MustCompile(`^[0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?(\.[0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?)*(:[0-9]+)?$|^\[[0-9A-Fa-f:]+\](:[0-9]+)?$`)
	imageDigest    = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
	imageID        = regexp.MustCompile(`^[0-9a-f]{64}$`) // names no repository
	repositoryName = regexp.MustCompile(`^[0-9a-z]+(([._]|__|-+)[0-9a-z]+)*(/[0-9a-z]+(([._]|__|-+)[0-9a-z]+)*)*$`)
)

func defaultProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	define.SetDefault(&probe.TimeoutSeconds, 1)
	define.SetDefault(&probe.PeriodSeconds, 10)
	define.SetDefault(&probe.SuccessThreshold, 1)
	define.SetDefault(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		define.SetDefaultPtr(&probe.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	define.SetDefault(&get.Path, "/")
	define.SetDefault(&get.Scheme, corev1.URISchemeHTTP)
	if get.Port == (intstr.IntOrString{}) {
		get.Port = intstr.FromInt32(0)
	}
}

// defaultVolume completes every source of a volume, also of one that has too many and is refused.
func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		return
	}
	complete(v.Secret, func(s *corev1.SecretVolumeSource) { define.SetDefaultPtr(&s.DefaultMode, defaultVolumeMode) })
	complete(v.ConfigMap, func(s *corev1.ConfigMapVolumeSource) { define.SetDefaultPtr(&s.DefaultMode, defaultVolumeMode) })
	complete(v.DownwardAPI, func(s *corev1.DownwardAPIVolumeSource) {
		define.SetDefaultPtr(&s.DefaultMode, defaultVolumeMode)
		defaultDownwardItems(s.Items)
	})
	complete(v.Projected, defaultProjected)
	complete(v.HostPath, defaultHostPath)
	complete(v.ISCSI, func(s *corev1.ISCSIVolumeSource) { define.SetDefault(&s.ISCSIInterface, defaultISCSIInterface) })
	complete(v.RBD, func(s *corev1.RBDVolumeSource) { defaultRBD(&s.RBDPool, &s.RadosUser, &s.Keyring) })
	complete(v.AzureDisk, defaultAzureDisk)
	complete(v.ScaleIO, func(s *corev1.ScaleIOVolumeSource) { defaultScaleIO(&s.StorageMode, &s.FSType) })
	complete(v.Image, func(s *corev1.ImageVolumeSource) { define.SetDefault(&s.PullPolicy, defaultPullPolicy(s.Reference)) })
	complete(v.Ephemeral, func(s *corev1.EphemeralVolumeSource) {
		if s.VolumeClaimTemplate != nil {
			define.SetDefaultPtr(&s.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		}
	})
}

// complete calls fill with a source, if there is one.
func complete[T any](source *T, fill func(*T)) {
	if source != nil {
		fill(source)
	}
}

func defaultHostPath(s *corev1.HostPathVolumeSource) {
	define.SetDefaultPtr(&s.Type, corev1.HostPathUnset)
}

const defaultISCSIInterface = "default"

func defaultRBD(pool, user, keyring *string) {
	define.SetDefault(pool, "rbd")
	define.SetDefault(user, "admin")
	define.SetDefault(keyring, "/etc/ceph/keyring")
}

func defaultAzureDisk(v *corev1.AzureDiskVolumeSource) {
	define.SetDefaultPtr(&v.CachingMode, corev1.AzureDataDiskCachingReadWrite)
	define.SetDefaultPtr(&v.FSType, "ext4")
	define.SetDefaultPtr(&v.ReadOnly, false)
	define.SetDefaultPtr(&v.Kind, corev1.AzureSharedBlobDisk)
}

func defaultScaleIO(mode, fileSystem *string) {
	define.SetDefault(mode, "ThinProvisioned")
	define.SetDefault(fileSystem, "xfs")
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	if len(p.Sources) == 0 {
		p.Sources = nil // no sources are null in JSON
	}
	define.SetDefaultPtr(&p.DefaultMode, defaultVolumeMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			define.SetDefaultPtr(&token.ExpirationSeconds, defaultTokenSeconds)
		}
		if down := p.Sources[i].DownwardAPI; down != nil {
			defaultDownwardItems(down.Items)
		}
	}
}

func defaultDownwardItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			define.SetDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}
