package podspec

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// references are what containers may refer to: volumes and resource claims, by their names.
type references struct {
	volumes volumeNames
	claims  claimNames
}

// validateContainers checks all containers of a pod, and what must be unique
// among them.
func validateContainers(path *field.Path, spec *corev1.PodSpec, refs references) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	unique := func(at *field.Path, name string) {
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	hostPorts := sets.New[string]()
	for i := range spec.Containers {
		at, c := path.Child("containers").Index(i), &spec.Containers[i]
		errs = append(errs, validateContainer(at, c, spec, refs)...)
		unique(at, c.Name)
		errs = append(errs, validateLifecycle(at, c, spec)...)
		errs = append(errs, validateProbes(at, c)...)
		errs = append(errs, validateRestartPolicy(at, c)...)
	}
	for i := range spec.Containers {
		errs = append(errs, claimHostPorts(path.Child("containers").Index(i).Child("ports"), spec.Containers[i].Ports, hostPorts)...)
	}
	for i := range spec.InitContainers {
		at, c := path.Child("initContainers").Index(i), &spec.InitContainers[i]
		errs = append(errs, validateContainer(at, c, spec, refs)...)
		if c.RestartPolicy != nil {
			errs = append(errs, validateRestartPolicy(at, c)...)
		} else if len(c.RestartPolicyRules) > 0 {
			errs = append(errs, field.Required(at.Child("restartPolicy"), rulesNeedPolicy))
		}
		if c.Name != "" || names.Has("") { // of several names that are missing, those of init containers alone are no repetition
			unique(at, c.Name)
		}
		// Containers that run one after the other may have the same ports. The index is kube-apiserver's.
		errs = append(errs, claimHostPorts(path.Child("initContainers").Index(0).Child("ports"), c.Ports, sets.New[string]())...)
		errs = append(errs, validateInitContainer(at, c, spec)...)
	}
	for i := range spec.InitContainers {
		names.Insert(spec.InitContainers[i].Name)
	}
	targets := names.Clone()
	for i := range spec.EphemeralContainers {
		at, c := path.Child("ephemeralContainers").Index(i), corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		errs = append(errs, validateContainer(at, &c, spec, refs)...)
		errs = append(errs, validateImage(at, c.Image)...) // also in a template, which may not have any
		unique(at, c.Name)
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

func validateContainer(path *field.Path, c *corev1.Container, spec *corev1.PodSpec, refs references) field.ErrorList {
	errs := validate.RequiredSyntax(path.Child("name"), c.Name, validation.IsDNS1123Label)
	errs = append(errs, validate.Required(path.Child("image"), c.Image)...)
	errs = append(errs, validate.OneOfInOrder(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateContainerPorts(path.Child("ports"), c.Ports)...)
	errs = append(errs, validateEnv(path, c)...)
	errs = append(errs, validateMounts(path, c, refs.volumes)...)
	errs = append(errs, validate.OneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validateResources(path.Child("resources"), &c.Resources, refs.claims)...)
	errs = append(errs, validateResizePolicy(path.Child("resizePolicy"), c.ResizePolicy, spec.RestartPolicy)...)
	return append(errs, validateSecurity(path.Child("securityContext"), c.SecurityContext, define.ValueOr(spec.HostUsers, true))...)
}

// validateResizePolicy checks what happens to a container whose resources change. Errors are about
// the list as a whole, as kube-apiserver's are.
func validateResizePolicy(path *field.Path, list []corev1.ContainerResizePolicy, restart corev1.RestartPolicy) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceName]()
	for i, p := range list {
		if seen.Has(p.ResourceName) {
			errs = append(errs, field.Duplicate(path.Index(i), p.ResourceName))
		}
		seen.Insert(p.ResourceName)
		errs = append(errs, validate.OneOf(path, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, validate.OneOf(path, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if restart == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}

const rulesNeedPolicy = "must specify restartPolicy when restart rules are used"

// validateRestartPolicy checks a container's own policy (KEP-5307).
func validateRestartPolicy(path *field.Path, c *corev1.Container) field.ErrorList {
	const maxRules, maxExitCodes = 20, 255
	var errs field.ErrorList
	at, rules := path.Child("restartPolicy"), path.Child("restartPolicyRules")
	switch {
	case c.RestartPolicy != nil:
		errs = append(errs, validate.Supported(at, *c.RestartPolicy, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	case len(c.RestartPolicyRules) > 0:
		errs = append(errs, field.Required(at, rulesNeedPolicy))
	}
	if n := len(c.RestartPolicyRules); n > maxRules {
		errs = append(errs, field.TooMany(rules, n, maxRules))
	}
	for i, rule := range c.RestartPolicyRules {
		at := rules.Index(i)
		errs = append(errs, validate.Supported(at.Child("action"), rule.Action, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(at.Child("exitCodes"), "must be specified"))
			continue
		}
		errs = append(errs, validate.Supported(at.Child("exitCodes", "operator"), rule.ExitCodes.Operator, corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(rule.ExitCodes.Values); n > maxExitCodes {
			errs = append(errs, field.TooMany(at.Child("exitCodes", "values"), n, maxExitCodes))
		}
	}
	return errs
}

// validateInitContainer refuses what makes no sense before a pod runs, unless
// the container is a sidecar (KEP-753).
func validateInitContainer(path *field.Path, c *corev1.Container, spec *corev1.PodSpec) field.ErrorList {
	sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	if sidecar {
		return append(validateLifecycle(path, c, spec), validateProbes(path, c)...)
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
	for i, p := range c.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			errs = append(errs, field.Invalid(path.Child("resizePolicy").Index(i).Child("restartPolicy"), p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers"))
		}
	}
	return errs
}

func validateContainerPorts(path *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			errs = append(errs, validatePortName(at.Child("name"), p.Name, names)...)
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

// validatePortName checks the name of a port. Of one that is none, it is not said that it is another
// port's, too.
func validatePortName(path *field.Path, name string, taken sets.Set[string]) field.ErrorList {
	if messages := validation.IsValidPortName(name); len(messages) > 0 {
		return validate.Invalid(path, name, messages)
	}
	if taken.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	taken.Insert(name)
	return nil
}

// Protocol checks a transport protocol.
func Protocol(path *field.Path, p corev1.Protocol) field.ErrorList {
	return validate.OneOf(path, p, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

// claimHostPorts: two containers of a pod cannot both have a port of the host.
func claimHostPorts(path *field.Path, ports []corev1.ContainerPort, taken sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		if p.HostPort == 0 {
			continue
		}
		claim := string(p.Protocol) + "/" + p.HostIP + "/" + strconv.Itoa(int(p.HostPort))
		if taken.Has(claim) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("hostPort"), claim))
		}
		taken.Insert(claim)
	}
	return errs
}

// validateEphemeralContainer refuses what a container that is only there to
// look (KEP-277) cannot have, in the order of the fields of kube-apiserver's own type. names are the
// containers it may look at.
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
	forbid("resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0)
	forbid("resizePolicy", len(c.ResizePolicy) > 0)
	forbid("restartPolicy", c.RestartPolicy != nil)
	forbid("restartPolicyRules", len(c.RestartPolicyRules) > 0)
	forbid("livenessProbe", c.LivenessProbe != nil)
	forbid("readinessProbe", c.ReadinessProbe != nil)
	forbid("startupProbe", c.StartupProbe != nil)
	forbid("lifecycle", c.Lifecycle != nil)
	for i, mount := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			errs = append(errs, field.Forbidden(at.Child("subPath"), "cannot be set for an Ephemeral Container"))
		}
		if mount.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(at.Child("subPathExpr"), "cannot be set for an Ephemeral Container"))
		}
	}
	return errs
}
