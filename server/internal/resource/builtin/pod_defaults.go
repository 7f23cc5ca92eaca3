package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	defaultGraceSeconds int64 = 30
	defaultVolumeMode   int32 = 0o644
	defaultTokenSeconds int64 = 3600
)

// defaultPod completes a pod: its spec as in a template, and what only pods
// have.
func defaultPod(pod *corev1.Pod) {
	defaultPodSpec(&pod.Spec)
	setDefaultPtr(&pod.Spec.EnableServiceLinks, true)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			for j := range containers[i].Ports {
				if p := &containers[i].Ports[j]; pod.Spec.HostNetwork {
					setDefault(&p.HostPort, p.ContainerPort)
				}
			}
		}
	}
	if len(pod.Status.PodIPs) == 0 && pod.Status.PodIP != "" {
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	if pod.Status.PodIP == "" && len(pod.Status.PodIPs) > 0 {
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
	}
}

// requestLimits makes a limit the request where there is none.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultPodTemplate completes the template of a workload.
func defaultPodTemplate(template *corev1.PodTemplateSpec) {
	defaultPodSpec(&template.Spec)
}

func defaultPodSpec(spec *corev1.PodSpec) {
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefaultPtr(&spec.TerminationGracePeriodSeconds, defaultGraceSeconds)
	setDefaultPtr(&spec.SecurityContext, corev1.PodSecurityContext{})
	// The old name of the field is kept equal to the new one.
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
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
	for i := range spec.TopologySpreadConstraints {
		setDefault(&spec.TopologySpreadConstraints[i].WhenUnsatisfiable, corev1.DoNotSchedule)
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.ImagePullPolicy, defaultPullPolicy(c.Image))
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setDefault(&from.FieldRef.APIVersion, "v1")
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
	setDefault(&probe.TimeoutSeconds, 1)
	setDefault(&probe.PeriodSeconds, 10)
	setDefault(&probe.SuccessThreshold, 1)
	setDefault(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		setDefaultPtr(&probe.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	setDefault(&get.Path, "/")
	setDefault(&get.Scheme, corev1.URISchemeHTTP)
	if get.Port == (intstr.IntOrString{}) {
		get.Port = intstr.FromInt32(0)
	}
}

func defaultVolume(v *corev1.Volume) {
	switch {
	case v.VolumeSource == (corev1.VolumeSource{}):
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case v.Secret != nil:
		setDefaultPtr(&v.Secret.DefaultMode, defaultVolumeMode)
	case v.ConfigMap != nil:
		setDefaultPtr(&v.ConfigMap.DefaultMode, defaultVolumeMode)
	case v.DownwardAPI != nil:
		setDefaultPtr(&v.DownwardAPI.DefaultMode, defaultVolumeMode)
		defaultDownwardItems(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.HostPath != nil:
		setDefaultPtr(&v.HostPath.Type, corev1.HostPathUnset)
	case v.ISCSI != nil:
		setDefault(&v.ISCSI.ISCSIInterface, "default")
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		setDefaultPtr(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	setDefaultPtr(&p.DefaultMode, defaultVolumeMode)
	for i := range p.Sources {
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			setDefaultPtr(&token.ExpirationSeconds, defaultTokenSeconds)
		}
		if down := p.Sources[i].DownwardAPI; down != nil {
			defaultDownwardItems(down.Items)
		}
	}
}

func defaultDownwardItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			setDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}
