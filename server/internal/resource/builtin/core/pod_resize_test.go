package core

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func requirements(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// TestResize: what of a pod may be another size, and what its refusal says.
func TestResize(t *testing.T) {
	before := func() *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "i", Resources: requirements(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2"))}, {Name: "b", Image: "i"}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i", Resources: requirements(amounts("cpu", "1"), nil)}}
		defaultPod(pod)
		pod.Status.QOSClass = corev1.PodQOSBurstable
		return pod
	}
	for name, test := range map[string]struct {
		old, change func(*corev1.Pod)
		want        string // a part of what the refusal says; empty: none
	}{
		"nothing":                   {},
		"more":                      {change: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2", "memory", "2Gi") }},
		"a request that is new":     {change: func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests = amounts("cpu", "1") }},
		"an init container":         {change: func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Requests = amounts("cpu", "2") }},
		"the pod":                   {change: func(p *corev1.Pod) { p.Spec.Resources = new(requirements(amounts("cpu", "3", "memory", "3Gi"), nil)) }},
		"less of one":               {change: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts("cpu", "1") }, want: "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"},
		"no limit":                  {change: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }, want: "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
		"less of an init container": {change: func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Requests = nil }, want: "spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed"},
		"another class":             {change: func(p *corev1.Pod) { p.Status.QOSClass = "Guaranteed" }, old: func(p *corev1.Pod) { p.Status.QOSClass = "Guaranteed" }, want: `spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing`},
		"another resource": {change: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/x"] = resource.MustParse("1")
		}, want: "spec: Forbidden: only cpu and memory resources are mutable"},
		"how it is resized": {change: func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
		}, want: "spec: Forbidden: only cpu and memory resources are mutable"},
		"a renamed container":     {change: func(p *corev1.Pod) { p.Spec.Containers[0].Name = "c" }, want: "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"},
		"one container less":      {change: func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, want: "spec.containers: Forbidden: containers may not be added or removed on resize"},
		"one init container less": {change: func(p *corev1.Pod) { p.Spec.InitContainers = nil }, want: "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
		"less of the pod":         {old: podResources, change: func(p *corev1.Pod) { p.Spec.Resources = new(requirements(amounts("cpu", "3"), nil)) }, want: "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"},
		"of the pod nothing":      {old: podResources, change: func(p *corev1.Pod) { p.Spec.Resources = nil }, want: "spec.resources: Forbidden: pod-level resources cannot be removed"},
		"a static pod":            {old: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, want: "static pods cannot be resized"},
		"on Windows":              {old: func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, want: "windows pods cannot be resized"},
		"a node that cannot": {old: func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, want: "spec: Forbidden: Pod running on node without support for resize"},
		"a restarted init container": {old: restartedInit, change: func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Requests = amounts("cpu", "2") }, want: "spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized"},
	} {
		t.Run(name, func(t *testing.T) {
			old := before()
			if test.old != nil {
				test.old(old)
			}
			pod := old.DeepCopy()
			if test.change != nil {
				test.change(pod)
			}
			kept := pod.DeepCopy()
			errs := validateResize(pod, old)
			switch {
			case test.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs)
			case test.want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), test.want)):
				t.Errorf("%v, want %s", errs, test.want)
			}
			if !pod.Spec.Containers[0].Resources.Requests.Cpu().Equal(*kept.Spec.Containers[0].Resources.Requests.Cpu()) {
				t.Error("validation has changed the pod")
			}
		})
	}
}

func podResources(p *corev1.Pod) {
	p.Spec.Resources = new(requirements(amounts("cpu", "3", "memory", "3Gi"), nil))
}

func restartedInit(p *corev1.Pod) {
	p.Spec.InitContainers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
}
