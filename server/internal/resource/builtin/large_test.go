package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// texts returns n texts that differ.
func texts(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

// TestLargeObjects: what is compared in one object does not grow with the square of its lists. So many
// elements fit into one request; comparing each with each takes from half a minute to hours.
func TestLargeObjects(t *testing.T) {
	const many = 50_000
	labels := texts("l", many)
	for name, tt := range map[string]struct {
		manifest string
		change   func(obj resource.Object)
		want     string // of the first errors
	}{
		"keys of labels": {"pod", func(obj resource.Object) {
			obj.(*corev1.Pod).Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "t", LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: labels, MismatchLabelKeys: append(texts("m", many), labels[many-1]),
			}}}}
		}, "exists in both matchLabelKeys and mismatchLabelKeys"},
		"keys of labels that are selected": {"pod", func(obj resource.Object) {
			selector := &metav1.LabelSelector{}
			for _, key := range append(texts("m", many), labels[many-1], labels[many-1]) {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
			}
			obj.(*corev1.Pod).Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "t", LabelSelector: selector, MatchLabelKeys: labels,
			}}}}
		}, "exists in both matchLabelKeys and labelSelector"},
		"requests of claims": {"pod", func(obj resource.Object) {
			c := &obj.(*corev1.Pod).Spec.Containers[0]
			for i := range many {
				c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: "c", Request: fmt.Sprint("r", i)})
			}
			for i := range many {
				c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: fmt.Sprint("c", i)})
			}
		}, "must be one of the names in pod.spec.resourceClaims which is empty"},
		"unknown claims": {"pod", func(obj resource.Object) {
			spec := &obj.(*corev1.Pod).Spec
			for i := range many / 4 {
				spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: new("r")})
				spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprint("n", i), Image: "i", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "x"}}}})
			}
		}, "must be one of the names in pod.spec.resourceClaims: c0, c1, "},
		"resources of sidecars": {"pod", func(obj resource.Object) {
			spec := &obj.(*corev1.Pod).Spec
			spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": apiresource.MustParse("100")}}
			for i := range many / 4 {
				own := corev1.ResourceList{corev1.ResourceName(fmt.Sprint("hugepages-", i)): apiresource.MustParse("1"), "cpu": apiresource.MustParse("1")}
				spec.InitContainers = append(spec.InitContainers, corev1.Container{
					Name: fmt.Sprint("n", i), Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: own, Limits: own},
				})
			}
		}, "must be greater than or equal to aggregate container requests of 12"},
		"profiles of containers": {"deployment", func(obj resource.Object) {
			template := &obj.(*appsv1.Deployment).Spec.Template
			template.Annotations = map[string]string{}
			for i := range many / 2 {
				template.Annotations[fmt.Sprint(corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix, "c", i)] = ""
				template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: fmt.Sprint("n", i), Image: "i"})
			}
		}, "container not found"},
		"claims of a StatefulSet": {"statefulset", func(obj resource.Object) {
			spec := &obj.(*appsv1.StatefulSet).Spec
			for _, name := range labels {
				spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		}, ""},
		"scopes of a quota": {"quota", func(obj resource.Object) {
			spec := &obj.(*corev1.ResourceQuota).Spec
			spec.Hard = corev1.ResourceList{}
			for _, name := range texts("hugepages-", many) {
				spec.Hard[corev1.ResourceName(name)] = apiresource.MustParse("1")
			}
			spec.ScopeSelector = &corev1.ScopeSelector{}
			for range many {
				spec.Scopes = append(spec.Scopes, corev1.ResourceQuotaScopeTerminating)
				spec.ScopeSelector.MatchExpressions = append(spec.ScopeSelector.MatchExpressions,
					corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists})
			}
		}, "unsupported scope applied to resource"},
		"resources of a webhook": {"webhook", func(obj resource.Object) {
			obj.(*admissionv1.ValidatingWebhookConfiguration).Webhooks[0].Rules[0].Resources = append(slices.Repeat([]string{"*"}, many), texts("r/", many)...)
		}, ""},
	} {
		r, obj := manifest(t, tt.manifest)
		tt.change(obj)
		errs := validateNew(r, obj)
		if r.Strategy.Warnings != nil {
			r.Strategy.Warnings(obj, nil)
		}
		said := ""
		for _, err := range errs {
			if strings.Contains(err.Detail, tt.want) {
				said = err.Detail
			}
		}
		if (said == "") != (tt.want == "") {
			t.Errorf("%s: none of %d errors is %q", name, len(errs), tt.want)
		}
	}
}

// TestLargeUpdates: nor does what is compared of an object before and after.
func TestLargeUpdates(t *testing.T) {
	const many = 100_000
	addresses := make([]string, many)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("010.%d.%d.%d", i>>16, i>>8&255, i&255) // as it was allowed once
	}
	ports := make([]corev1.ServicePort, many)
	for i := range ports {
		ports[i] = corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i), NodePort: int32(i + 1)}
	}
	drivers := make([]storagev1.CSINodeDriver, many)
	for i := range drivers {
		drivers[i] = storagev1.CSINodeDriver{Name: fmt.Sprint("d", i), NodeID: "n"}
	}
	finalizers := texts("example.com/f", many)
	for name, tt := range map[string]struct {
		manifest string
		change   func(obj resource.Object)
		check    func(r *resource.Resource, obj, old resource.Object) int // errors
	}{
		"blocks of a NetworkPolicy": {"networkpolicy", func(obj resource.Object) {
			block := obj.(*networkingv1.NetworkPolicy).Spec.Ingress[0].From[0].IPBlock
			block.Except = nil
			for _, address := range addresses {
				block.Except = append(block.Except, address+"/32")
			}
		}, func(r *resource.Resource, obj, old resource.Object) int {
			return len(validateChanged(r, obj, old))
		}},
		"addresses of an Ingress": {"ingress", func(obj resource.Object) {
			for _, address := range addresses {
				status := &obj.(*networkingv1.Ingress).Status.LoadBalancer
				status.Ingress = append(status.Ingress, networkingv1.IngressLoadBalancerIngress{IP: address})
			}
		}, func(r *resource.Resource, obj, old resource.Object) int {
			return len(r.Strategy.ValidateStatus(obj, old))
		}},
		"drivers of a node": {"csinode", func(obj resource.Object) {
			obj.(*storagev1.CSINode).Spec.Drivers = drivers
		}, func(r *resource.Resource, obj, old resource.Object) int {
			return len(validateChanged(r, obj, old))
		}},
		"ports of a Service": {"service", func(obj resource.Object) {
			svc := obj.(*corev1.Service)
			svc.Spec.Type, svc.Spec.Ports = corev1.ServiceTypeNodePort, ports
		}, func(r *resource.Resource, obj, old resource.Object) int {
			svc := obj.(*corev1.Service)
			svc.Spec.Type = corev1.ServiceTypeClusterIP
			r.Strategy.PrepareForUpdate(obj, old)
			return int(svc.Spec.Ports[many-1].NodePort)
		}},
		"finalizers": {"secret", func(obj resource.Object) {
			obj.SetFinalizers(finalizers)
		}, func(r *resource.Resource, obj, old resource.Object) int {
			return len(validateChanged(r, obj, old))
		}},
	} {
		r, old := manifest(t, tt.manifest)
		tt.change(old)
		if n := tt.check(r, old.DeepCopyObject().(resource.Object), old); n != 0 {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// TestLargePodStatus: nor does what is compared of the status of a pod and its containers. Together, this took longer than all
// tests of the package may.
func TestLargePodStatus(t *testing.T) {
	const many = 100_000
	r, obj := manifest(t, "pod")
	pod := obj.(*corev1.Pod)
	spec, status := &pod.Spec, &pod.Status
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	one := corev1.ResourceList{"example.com/a": apiresource.MustParse("1")}
	large := corev1.Container{Name: "large", Image: "i", Resources: corev1.ResourceRequirements{Requests: one}}
	extended := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}
	status.ExtendedResourceClaimStatus = extended
	for i := range many {
		name := fmt.Sprint("n", i)
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: new("c")})
		status.ResourceClaimStatuses = append(status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: name, ResourceClaimName: new("c")})
		spec.Containers = append(spec.Containers, corev1.Container{Name: name, Image: "i", Resources: corev1.ResourceRequirements{Requests: one}})
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: name, AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "example.com/a"}}})
		large.Resources.Claims = append(large.Resources.Claims, corev1.ResourceClaim{Name: name, Request: "r"})
		for _, container := range []string{name, large.Name} {
			extended.RequestMappings = append(extended.RequestMappings, corev1.ContainerExtendedResourceRequest{ContainerName: container, ResourceName: "example.com/a", RequestName: name})
		}
	}
	ofLarge := corev1.ContainerStatus{Name: large.Name}
	for i := range many {
		for _, claim := range []string{fmt.Sprint("claim:n", i, "/r"), fmt.Sprint("claim:x/n", i)} {
			ofLarge.AllocatedResourcesStatus = append(ofLarge.AllocatedResourcesStatus, corev1.ResourceStatus{Name: corev1.ResourceName(claim)})
		}
	}
	spec.Containers, status.ContainerStatuses = append(spec.Containers, large), append(status.ContainerStatuses, ofLarge)
	old := pod.DeepCopy()
	for i := range old.Status.ContainerStatuses {
		state := &old.Status.ContainerStatuses[i].State
		state.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(min(i, 1))} // all but the first have failed, and run again
	}
	errs := r.Strategy.ValidateStatus(pod, old)
	if len(errs) != 1 || errs[0].Field != "status.containerStatuses[0].state" {
		t.Errorf("%d errors: %v", len(errs), errs[:min(len(errs), 3)])
	}
}
