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

// validateContainers checks all containers of a pod, and what must be unique
// among them. volumes are the names they may mount.
func validateContainers(path *field.Path, spec *corev1.PodSpec, volumes sets.Set[string]) field.ErrorList {
	if len(spec.Containers) == 0 {
		return field.ErrorList{field.Required(path.Child("containers"), "")}
	}
	names := sets.New[string]()
	hostPorts := sets.New[hostPort]()
	var errs field.ErrorList
	check := func(at *field.Path, c *corev1.Container) {
		if c.Name != "" && names.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names.Insert(c.Name)
		errs = append(errs, validateContainer(at, c, volumes)...)
	}
	for i := range spec.InitContainers {
		at, c := path.Child("initContainers").Index(i), &spec.InitContainers[i]
		check(at, c)
		errs = append(errs, validateInitContainer(at, c)...)
	}
	for i := range spec.Containers {
		at, c := path.Child("containers").Index(i), &spec.Containers[i]
		check(at, c)
		errs = append(errs, validateProbes(at, c)...)
		errs = append(errs, validateLifecycle(at, c)...)
		errs = append(errs, claimHostPorts(at.Child("ports"), c.Ports, hostPorts)...)
	}
	errs = append(errs, hostNetworkPorts(path, spec)...)
	targets := names.Clone()
	for i := range spec.EphemeralContainers {
		at, c := path.Child("ephemeralContainers").Index(i), corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		check(at, &c)
		errs = append(errs, validateEphemeralContainer(at, &spec.EphemeralContainers[i], targets)...)
	}
	return errs
}

// hostNetworkPorts: a pod in the host's network has the host's ports. A
// template may leave that to its pods.
func hostNetworkPorts(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if !spec.HostNetwork {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.Containers {
		for j, p := range spec.Containers[i].Ports {
			if p.HostPort != 0 && p.HostPort != p.ContainerPort {
				errs = append(errs, field.Invalid(path.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return errs
}

func validateContainer(path *field.Path, c *corev1.Container, volumes sets.Set[string]) field.ErrorList {
	errs := validate.RequiredSyntax(path.Child("name"), c.Name, validation.IsDNS1123Label)
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, validate.OneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validate.OneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateContainerPorts(path.Child("ports"), c.Ports)...)
	errs = append(errs, validateEnv(path, c)...)
	errs = append(errs, validateMounts(path, c, volumes)...)
	errs = append(errs, validateSecurity(path.Child("securityContext"), c.SecurityContext)...)
	for i, p := range c.ResizePolicy {
		at := path.Child("resizePolicy").Index(i)
		errs = append(errs, validate.OneOf(at.Child("resourceName"), p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, validate.OneOf(at.Child("restartPolicy"), p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
	}
	return append(errs, validateResources(path.Child("resources"), &c.Resources)...)
}

// validateInitContainer refuses what makes no sense before a pod runs, unless
// the container is a sidecar (KEP-753).
func validateInitContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	if sidecar {
		return append(validateProbes(path, c), validateLifecycle(path, c)...)
	}
	var errs field.ErrorList
	forbid := func(name string, present bool) {
		if present {
			errs = append(errs, field.Forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	forbid("lifecycle", c.Lifecycle != nil)
	forbid("livenessProbe", c.LivenessProbe != nil)
	forbid("readinessProbe", c.ReadinessProbe != nil)
	forbid("startupProbe", c.StartupProbe != nil)
	return errs
}

func validateContainerPorts(path *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			errs = append(errs, validate.Invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, validate.PortNumber(at.Child("containerPort"), p.ContainerPort)...)
		}
		if p.HostPort != 0 {
			errs = append(errs, validate.PortNumber(at.Child("hostPort"), p.HostPort)...)
		}
		errs = append(errs, Protocol(at.Child("protocol"), p.Protocol)...)
	}
	return errs
}

// Protocol checks a transport protocol.
func Protocol(path *field.Path, p corev1.Protocol) field.ErrorList {
	return validate.OneOf(path, p, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

// hostPort is what two containers of a pod cannot both have.
type hostPort struct {
	protocol corev1.Protocol
	ip       string
	port     int32
}

func claimHostPorts(path *field.Path, ports []corev1.ContainerPort, taken sets.Set[hostPort]) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		if p.HostPort == 0 {
			continue
		}
		claim := hostPort{p.Protocol, p.HostIP, p.HostPort}
		if taken.Has(claim) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("hostPort"), p.HostPort))
		}
		taken.Insert(claim)
	}
	return errs
}

func validateMounts(path *field.Path, c *corev1.Container, volumes sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	points := sets.New[string]()
	for i, m := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		errs = append(errs, validate.Required(at.Child("mountPath"), m.MountPath)...)
		if points.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points.Insert(m.MountPath)
		errs = append(errs, descendingPath(at.Child("subPath"), m.SubPath)...)
		errs = append(errs, descendingPath(at.Child("subPathExpr"), m.SubPathExpr)...)
		if p := m.MountPropagation; p != nil {
			errs = append(errs, mountPropagation(at.Child("mountPropagation"), *p, c)...)
		}
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
	}
	for i, d := range c.VolumeDevices {
		at := path.Child("volumeDevices").Index(i)
		if !volumes.Has(d.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		}
		errs = append(errs, validate.Required(at.Child("devicePath"), d.DevicePath)...)
	}
	return errs
}

// mountPropagation: only a privileged container may show its mounts to its
// host.
func mountPropagation(path *field.Path, mode corev1.MountPropagationMode, c *corev1.Container) field.ErrorList {
	errs := validate.OneOf(path, mode, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := c.SecurityContext != nil && define.ValueOr(c.SecurityContext.Privileged, false)
	if mode == corev1.MountPropagationBidirectional && !privileged {
		errs = append(errs, field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))
	}
	return errs
}

// validateEphemeralContainer refuses what a container that is only there to
// look (KEP-277) cannot have. names are the containers it may look at.
func validateEphemeralContainer(path *field.Path, c *corev1.EphemeralContainer, names sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	if target := c.TargetContainerName; target != "" && !names.Has(target) {
		errs = append(errs, field.NotFound(path.Child("targetContainerName"), target))
	}
	forbid := func(name string, present bool) {
		if present {
			errs = append(errs, field.Forbidden(path.Child(name), "cannot be set for an Ephemeral Container"))
		}
	}
	forbid("ports", len(c.Ports) > 0)
	forbid("livenessProbe", c.LivenessProbe != nil)
	forbid("readinessProbe", c.ReadinessProbe != nil)
	forbid("startupProbe", c.StartupProbe != nil)
	forbid("lifecycle", c.Lifecycle != nil)
	forbid("resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0)
	forbid("resizePolicy", len(c.ResizePolicy) > 0)
	forbid("restartPolicy", c.RestartPolicy != nil)
	for i, mount := range c.VolumeMounts {
		if mount.SubPath != "" || mount.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(path.Child("volumeMounts").Index(i).Child("subPath"), "cannot be set for an Ephemeral Container"))
		}
	}
	return errs
}
