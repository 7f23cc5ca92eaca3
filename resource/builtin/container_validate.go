package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
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
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		check(path.Child("ephemeralContainers").Index(i), &c)
	}
	return errs
}

func validateContainer(path *field.Path, c *corev1.Container, volumes sets.Set[string]) field.ErrorList {
	errs := requiredSyntax(path.Child("name"), c.Name, validation.IsDNS1123Label)
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateContainerPorts(path.Child("ports"), c.Ports)...)
	errs = append(errs, validateEnv(path, c)...)
	errs = append(errs, validateMounts(path, c, volumes)...)
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
			errs = append(errs, invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(at.Child("containerPort"), p.ContainerPort)...)
		}
		if p.HostPort != 0 {
			errs = append(errs, portNumber(at.Child("hostPort"), p.HostPort)...)
		}
		errs = append(errs, protocol(at.Child("protocol"), p.Protocol)...)
	}
	return errs
}

func protocol(path *field.Path, p corev1.Protocol) field.ErrorList {
	return oneOf(path, p, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
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

func validateEnv(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i, e := range c.Env {
		at := path.Child("env").Index(i)
		errs = append(errs, requiredSyntax(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName)...)
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(at.Child("valueFrom"), &e)...)
		}
	}
	for i, from := range c.EnvFrom {
		at := path.Child("envFrom").Index(i)
		switch {
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(at, "", "may not have more than one field specified at a time"))
		case from.ConfigMapRef != nil:
			errs = append(errs, required(at.Child("configMapRef", "name"), from.ConfigMapRef.Name)...)
		case from.SecretRef != nil:
			errs = append(errs, required(at.Child("secretRef", "name"), from.SecretRef.Name)...)
		default:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return errs
}

func validateEnvSource(path *field.Path, e *corev1.EnvVar) field.ErrorList {
	var errs field.ErrorList
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		errs = append(errs, required(path.Child("fieldRef", "fieldPath"), from.FieldRef.FieldPath)...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		errs = append(errs, required(path.Child("resourceFieldRef", "resource"), from.ResourceFieldRef.Resource)...)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		errs = append(errs, requiredSyntax(path.Child("configMapKeyRef", "key"), from.ConfigMapKeyRef.Key, validation.IsConfigMapKey)...)
	}
	if from.SecretKeyRef != nil {
		sources++
		errs = append(errs, requiredSyntax(path.Child("secretKeyRef", "key"), from.SecretKeyRef.Key, validation.IsConfigMapKey)...)
	}
	if from.FileKeyRef != nil {
		sources++
		errs = append(errs, required(path.Child("fileKeyRef", "path"), from.FileKeyRef.Path)...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
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
		errs = append(errs, required(at.Child("mountPath"), m.MountPath)...)
		if points.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points.Insert(m.MountPath)
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
	}
	for i, d := range c.VolumeDevices {
		at := path.Child("volumeDevices").Index(i)
		if !volumes.Has(d.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		}
		errs = append(errs, required(at.Child("devicePath"), d.DevicePath)...)
	}
	return errs
}

// validateResources checks quantities: none negative, and no request above
// its limit.
func validateResources(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	errs := validateQuantities(path.Child("limits"), r.Limits)
	errs = append(errs, validateQuantities(path.Child("requests"), r.Requests)...)
	for name, request := range r.Requests {
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

// validateQuantities checks a list of amounts by resource name.
func validateQuantities(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for name, amount := range list {
		at := path.Key(string(name))
		errs = append(errs, invalid(at, name, validation.IsQualifiedName(string(name)))...)
		errs = append(errs, notNegativeQuantity(at, amount)...)
	}
	return errs
}

func notNegativeQuantity(path *field.Path, amount apiresource.Quantity) field.ErrorList {
	if amount.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than or equal to 0")}
	}
	return nil
}
