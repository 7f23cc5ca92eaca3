package core

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// The lists of container statuses that a pod's status has.
const (
	containerStatuses = "containerStatuses"
	initStatuses      = "initContainerStatuses"
	ephemeralStatuses = "ephemeralContainerStatuses"
)

// checkRestarts: a container that has ended runs again only if the pod says so.
func (c *podStatusChange) checkRestarts() {
	spec, s, was := &c.old.Spec, &c.pod.Status, &c.old.Status
	if !restartsAll(spec) {
		containers, initContainers := named{list: spec.Containers}, named{list: spec.InitContainers}
		c.checkEnded(containerStatuses, s.ContainerStatuses, was.ContainerStatuses, func(name string, code int32) bool {
			return runsAgain(spec, containers.get(name), code)
		})
		c.checkEnded(initStatuses, s.InitContainerStatuses, was.InitContainerStatuses, func(name string, code int32) bool {
			return runsAgain(spec, initContainers.get(name), code)
		})
	}
	c.checkEnded(ephemeralStatuses, s.EphemeralContainerStatuses, was.EphemeralContainerStatuses, func(string, int32) bool { return false })
}

func (c *podStatusChange) checkEnded(list string, now, before []corev1.ContainerStatus, restarts func(name string, code int32) bool) {
	var running sets.Set[string] // now, if it matters
	for i := range before {
		ended := before[i].State.Terminated
		if ended == nil {
			continue
		}
		if running == nil {
			running = sets.New[string]()
			for j := range now {
				if now[j].State.Terminated == nil {
					running.Insert(now[j].Name)
				}
			}
		}
		if running.Has(before[i].Name) && !restarts(before[i].Name, ended.ExitCode) {
			c.add(field.Forbidden(c.path.Child(list).Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
}

// restartsAll reports whether the end of a container may restart the whole pod (KEP-5532).
func restartsAll(spec *corev1.PodSpec) bool {
	all := func(rule corev1.ContainerRestartRule) bool {
		return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	}
	has := func(container corev1.Container) bool { return slices.ContainsFunc(container.RestartPolicyRules, all) }
	return slices.ContainsFunc(spec.InitContainers, has) || slices.ContainsFunc(spec.Containers, has)
}

// runsAgain reports whether a container runs again after it has ended with a code: by its own
// rules, its own policy, or else the pod's. One that the pod does not have never does.
func runsAgain(spec *corev1.PodSpec, container *corev1.Container, code int32) bool {
	if container == nil {
		return false
	}
	policy := spec.RestartPolicy
	if own := container.RestartPolicy; own != nil {
		for i := range container.RestartPolicyRules {
			if rule := &container.RestartPolicyRules[i]; isAbout(rule, code) {
				if rule.Action == corev1.ContainerRestartRuleActionRestart {
					return true
				}
				break // the first counts
			}
		}
		policy = corev1.RestartPolicy(*own) // the policies have the same names
	}
	return policy != corev1.RestartPolicyNever && (policy != corev1.RestartPolicyOnFailure || code != 0)
}

func isAbout(rule *corev1.ContainerRestartRule, code int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, code)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

// checkContainers checks who the processes of containers are, and how their resources do.
func (c *podStatusChange) checkContainers() {
	s := &c.pod.Status
	c.checkUsers(containerStatuses, s.ContainerStatuses)
	c.checkUsers(initStatuses, s.InitContainerStatuses)
	c.checkUsers(ephemeralStatuses, s.EphemeralContainerStatuses)
	c.checkAllocated(containerStatuses, s.ContainerStatuses, &c.containers)
	c.checkAllocated(initStatuses, s.InitContainerStatuses, &c.initContainers)
	for i := range s.EphemeralContainerStatuses {
		if len(s.EphemeralContainerStatuses[i].AllocatedResourcesStatus) > 0 {
			c.add(field.Forbidden(c.path.Child(ephemeralStatuses).Index(i).Child("allocatedResourcesStatus"), "must not be specified in container status"))
		}
	}
}

func (c *podStatusChange) checkUsers(list string, statuses []corev1.ContainerStatus) {
	system := corev1.Linux
	if os := c.pod.Spec.OS; os != nil {
		system = os.Name
	}
	for i := range statuses {
		if statuses[i].User == nil || statuses[i].User.Linux == nil {
			continue
		}
		at := c.path.Child(list).Index(i).Child("user", "linux")
		switch system {
		case corev1.Windows:
			c.add(field.Forbidden(at, "cannot be set for a windows pod"))
		case corev1.Linux:
			c.add(validateLinuxUser(at, statuses[i].User.Linux)...)
		}
	}
}

// validateLinuxUser: an image may have a user of any number, though no pod may ask for the upper half.
func validateLinuxUser(path *field.Path, user *corev1.LinuxContainerUser) field.ErrorList {
	var errs field.ErrorList
	if user.UID < 0 || user.UID > math.MaxUint32 {
		errs = append(errs, field.Invalid(path.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d, inclusive", uint32(math.MaxUint32))))
	}
	errs = append(errs, validate.Invalid(path.Child("gid"), user.GID, validation.IsValidGroupID(user.GID))...)
	for i, group := range user.SupplementalGroups {
		errs = append(errs, validate.Invalid(path.Child("supplementalGroups").Index(i), group, validation.IsValidGroupID(group))...)
	}
	return errs
}

// checkAllocated checks what is said of the health of containers' resources (KEP-4680).
func (c *podStatusChange) checkAllocated(list string, statuses []corev1.ContainerStatus, containers *named) {
	for i := range statuses {
		if len(statuses[i].AllocatedResourcesStatus) == 0 {
			continue
		}
		container := containers.get(statuses[i].Name)
		for j, allocated := range statuses[i].AllocatedResourcesStatus {
			at := c.path.Child(list).Index(i).Child("allocatedResourcesStatus").Index(j)
			if container != nil { // else it may be one of a newer pod
				c.add(c.checkAllocatedName(at.Child("name"), allocated.Name, container)...)
			}
			c.add(validateResourceHealth(at.Child("resources"), allocated.Resources)...)
		}
	}
}

const claimPrefix = "claim:"

// checkAllocatedName: what is allocated is a claim of the container, or a resource that it requests.
func (c *podStatusChange) checkAllocatedName(path *field.Path, name corev1.ResourceName, container *corev1.Container) field.ErrorList {
	claim, isClaim := strings.CutPrefix(string(name), claimPrefix)
	if !isClaim {
		if _, requested := container.Resources.Requests[name]; !requested {
			return field.ErrorList{field.Invalid(path, name, "must match one of the container's resource requests")}
		}
		return nil
	}
	if c.allocatable.to(container, c.pod.Status.ExtendedResourceClaimStatus).Has(claim) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")}
}

func validateResourceHealth(path *field.Path, resources []corev1.ResourceHealth) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceID]()
	for i, r := range resources {
		at := path.Index(i)
		errs = append(errs, validate.Supported(at.Child("health"), r.Health, corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)...)
		switch {
		case r.Message == nil:
		case *r.Message == "":
			errs = append(errs, field.Required(at.Child("message"), "must be non-empty if specified"))
		case len(*r.Message) > corev1.ResourceHealthMessageMaxLength:
			errs = append(errs, field.TooLong(at.Child("message"), *r.Message, corev1.ResourceHealthMessageMaxLength))
		}
		if seen.Has(r.ResourceID) {
			errs = append(errs, field.Duplicate(at.Child("resourceID"), r.ResourceID))
		}
		seen.Insert(r.ResourceID)
	}
	return errs
}
