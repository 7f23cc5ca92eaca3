package podspec

import (
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

// defaultPullPolicy is Always for an image without a fixed tag.
func defaultPullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	name := image[strings.LastIndexByte(image, '/')+1:] // a colon before it is a registry's port
	_, tag, tagged := strings.Cut(name, ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

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

func defaultVolume(v *corev1.Volume) {
	switch {
	case v.VolumeSource == (corev1.VolumeSource{}):
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case v.Secret != nil:
		define.SetDefaultPtr(&v.Secret.DefaultMode, defaultVolumeMode)
	case v.ConfigMap != nil:
		define.SetDefaultPtr(&v.ConfigMap.DefaultMode, defaultVolumeMode)
	case v.DownwardAPI != nil:
		define.SetDefaultPtr(&v.DownwardAPI.DefaultMode, defaultVolumeMode)
		defaultDownwardItems(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.HostPath != nil:
		define.SetDefaultPtr(&v.HostPath.Type, corev1.HostPathUnset)
	case v.ISCSI != nil:
		define.SetDefault(&v.ISCSI.ISCSIInterface, "default")
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		define.SetDefaultPtr(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
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
