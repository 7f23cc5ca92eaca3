package core

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// preparePodForStatusUpdate keeps the class that was computed at creation, and what writers leave
// out that do not know it: claims are still the pod's, and a generation was still observed. A list
// that is there and empty takes it away.
func preparePodForStatusUpdate(pod, old *corev1.Pod) {
	s, was := &pod.Status, &old.Status
	if s.QOSClass == "" {
		s.QOSClass = was.QOSClass
	}
	if s.ResourceClaimStatuses == nil {
		s.ResourceClaimStatuses = was.ResourceClaimStatuses
	}
	if s.ExtendedResourceClaimStatus == nil {
		s.ExtendedResourceClaimStatus = was.ExtendedResourceClaimStatus
	}
	if s.NodeAllocatableResourceClaimStatuses == nil {
		s.NodeAllocatableResourceClaimStatuses = was.NodeAllocatableResourceClaimStatuses
	}
	if s.ObservedGeneration == 0 {
		s.ObservedGeneration = was.ObservedGeneration
	}
	s.Conditions = keepObserved(s.Conditions, was.Conditions)
}

// keepObserved returns conditions with the generations that they had observed before. There may
// be several of a type: they keep them in order.
func keepObserved(conditions, before []corev1.PodCondition) []corev1.PodCondition {
	observed := map[corev1.PodConditionType][]int64{}
	for i := range before {
		observed[before[i].Type] = append(observed[before[i].Type], before[i].ObservedGeneration)
	}
	kept := slices.Clone(conditions) // the writer's list may be another's, too
	for i := range kept {
		c := &kept[i]
		if left := observed[c.Type]; len(left) > 0 {
			observed[c.Type] = left[1:]
			if c.ObservedGeneration == 0 {
				c.ObservedGeneration = left[0]
			}
		}
	}
	return kept
}

// podStatusChange is a write to the status of a pod.
type podStatusChange struct {
	pod, old *corev1.Pod
	path     *field.Path
	errs     field.ErrorList

	containers, initContainers named // of the pod
	allocatable                allocatable
}

func validatePodStatus(pod, old *corev1.Pod) field.ErrorList {
	c := &podStatusChange{pod: pod, old: old, path: field.NewPath("status")}
	c.containers.list, c.initContainers.list = pod.Spec.Containers, pod.Spec.InitContainers
	c.add(podspec.ValidateAnnotationChanges(pod, old)...)
	c.checkConditions()
	c.checkNomination()
	if s := &pod.Status; s.ObservedGeneration < 0 {
		c.add(field.Invalid(c.path.Child("observedGeneration"), s.ObservedGeneration, notNegativeInteger))
	}
	c.add(validate.Unchanged(c.path.Child("qosClass"), pod.Status.QOSClass, old.Status.QOSClass)...)
	c.checkRestarts()
	c.checkClaims()
	c.checkExtendedClaim()
	c.checkAddresses()
	c.checkContainers()
	return c.errs
}

const notNegativeInteger = "must be a non-negative integer"

func (c *podStatusChange) add(errs ...*field.Error) { c.errs = append(c.errs, errs...) }

func (c *podStatusChange) checkConditions() {
	for i := range c.pod.Status.Conditions {
		condition, at := &c.pod.Status.Conditions[i], c.path.Child("conditions").Index(i)
		if condition.ObservedGeneration < 0 {
			c.add(field.Invalid(at.Child("observedGeneration"), condition.ObservedGeneration, notNegativeInteger))
		}
		c.add(validate.Invalid(at.Child("Type"), string(condition.Type), validation.IsQualifiedName(string(condition.Type)))...) // kube-apiserver's path
	}
}

// checkNomination: a pod that waits may be promised a node; one that has a node waits no more.
func (c *podStatusChange) checkNomination() {
	now, at := c.pod.Status.NominatedNodeName, c.path.Child("nominatedNodeName")
	if now == "" || now == c.old.Status.NominatedNodeName {
		return
	}
	c.add(validate.Invalid(at, now, apivalidation.NameIsDNSSubdomain(now, false))...)
	if c.old.Spec.NodeName != "" {
		c.add(field.Forbidden(at, "may not be set on pods that are already bound to a node"))
	}
}

// checkClaims: the claims that were generated are those of the pod's templates, each once.
func (c *podStatusChange) checkClaims() {
	if len(c.pod.Status.ResourceClaimStatuses) == 0 {
		return
	}
	claims, seen := sets.New[string](), sets.New[string]()
	for i := range c.pod.Spec.ResourceClaims {
		claims.Insert(c.pod.Spec.ResourceClaims[i].Name)
	}
	for i, status := range c.pod.Status.ResourceClaimStatuses {
		at := c.path.Child("resourceClaimStatuses").Index(i)
		if !claims.Has(status.Name) {
			c.add(field.Invalid(at.Child("name"), status.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		if seen.Has(status.Name) {
			c.add(field.Duplicate(at.Child("name"), status.Name))
		}
		seen.Insert(status.Name)
		if name := status.ResourceClaimName; name != nil {
			c.add(validate.Invalid(at.Child("resourceClaimName"), name, apivalidation.NameIsDNSSubdomain(*name, false))...)
		}
	}
}

// checkExtendedClaim checks the claim that the scheduler has made for extended resources (KEP-5004).
func (c *podStatusChange) checkExtendedClaim() {
	claim, path := c.pod.Status.ExtendedResourceClaimStatus, c.path.Child("extendedResourceClaimStatus")
	if claim == nil {
		return
	}
	mappings := path.Child("requestMappings")
	if len(claim.RequestMappings) == 0 {
		c.add(field.Required(mappings, "at least one request mapping is required"))
	}
	seen := sets.New[corev1.ContainerExtendedResourceRequest]()
	for i, m := range claim.RequestMappings {
		at := mappings.Index(i)
		container := c.containers.get(m.ContainerName)
		if container == nil {
			container = c.initContainers.get(m.ContainerName)
		}
		if container == nil {
			c.add(field.Invalid(at.Child("containerName"), m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name"))
		} else if _, requested := container.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !requested {
			c.add(field.Invalid(at.Child("resourceName"), m.ResourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"))
		}
		c.add(validate.Invalid(path.Child("requestName"), m.RequestName, validation.IsDNS1123Label(m.RequestName))...)
		if seen.Has(m) {
			c.add(field.Duplicate(at.Child("containerName"), m.ContainerName), field.Duplicate(at.Child("resourceName"), m.ResourceName), field.Duplicate(at.Child("requestName"), m.RequestName))
		}
		seen.Insert(m)
	}
	c.add(validate.RequiredSyntax(path.Child("resourceClaimName"), claim.ResourceClaimName, func(name string) []string {
		return apivalidation.NameIsDNSSubdomain(name, false)
	})...)
}

// checkAddresses checks the addresses of the pod and of its node. Those that were there before
// may stay.
func (c *podStatusChange) checkAddresses() {
	s, was := &c.pod.Status, &c.old.Status
	ofPod := func(ip corev1.PodIP) string { return ip.IP }
	c.checkIPs("podIPs", s.PodIPs, addresses(s.PodIPs, ofPod), addresses(was.PodIPs, ofPod))
	ofHost := func(ip corev1.HostIP) string { return ip.IP }
	hosts := addresses(s.HostIPs, ofHost)
	if len(hosts) > 0 && s.HostIP != hosts[0] {
		c.add(field.Invalid(c.path.Child("hostIPs").Index(0).Child("ip"), hosts[0], "must be equal to `hostIP`"))
	}
	c.checkIPs("hostIPs", s.HostIPs, hosts, addresses(was.HostIPs, ofHost))
}

func addresses[T any](list []T, address func(T) string) []string {
	var result []string
	for _, element := range list {
		result = append(result, address(element))
	}
	return result
}

// checkIPs checks a list of at most one address of each family.
func (c *podStatusChange) checkIPs(list string, value any, now, before []string) {
	path := c.path.Child(list)
	for i, ip := range now {
		c.add(validation.IsValidIPForLegacyField(path.Index(i), ip, true, before)...)
	}
	if len(now) < 2 {
		return
	}
	both, err := netutils.IsDualStackIPStrings(now)
	if err != nil {
		c.add(field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !both || len(now) > 2 {
		c.add(field.Invalid(path, value, "may specify no more than one IP for each IP family"))
	}
}
