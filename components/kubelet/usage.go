package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of a pod that say what its containers seem to use. They may be changed while
// it runs.
const (
	// AnnotationCPUUsage is how much cpu the pod uses, as a quantity ("250m").
	AnnotationCPUUsage = "kubelet.levelwire.dev/cpu-usage"
	// AnnotationCPULoad is how much cpu all running pods of the pod's controller use
	// together, as a quantity ("2"): each has an equal part, so that more pods use less
	// each. It comes before AnnotationCPUUsage.
	AnnotationCPULoad = "kubelet.levelwire.dev/cpu-load"
	// AnnotationMemoryUsage is how much memory the pod uses, as a quantity ("100Mi").
	AnnotationMemoryUsage = "kubelet.levelwire.dev/memory-usage"
)

// What a container uses of which no annotation says it: a part of what it requests, and
// this much at least.
const (
	cpuShare, memoryShare = 10, 2 // a tenth, half
	leastMilliCPU         = 1
	leastMemory           = 8 << 20
	nodeMilliCPU          = 50 // of the node itself
	nodeMemory            = 256 << 20
)

// ContainerUsage is what a container uses.
type ContainerUsage struct {
	Name     string
	MilliCPU int64
	Memory   int64 // in bytes
}

// Usage returns what the containers of running pods use, by the model of the annotations
// above; pods that do not run use nothing and are left out. It is a pure function: all
// pods of a controller must be given for AnnotationCPULoad to be divided among them.
func Usage(pods []*corev1.Pod) map[types.UID][]ContainerUsage {
	running := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
	siblings := map[types.UID]int64{}
	for _, pod := range running {
		siblings[groupOf(pod)]++
	}
	used := make(map[types.UID][]ContainerUsage, len(running))
	for _, pod := range running {
		used[pod.UID] = usageOf(pod, siblings[groupOf(pod)])
	}
	return used
}

// groupOf returns what a pod shares its load with.
func groupOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return pod.UID
}

func usageOf(pod *corev1.Pod, siblings int64) []ContainerUsage {
	cpu, hasCPU := annotated(pod, AnnotationCPULoad, (*resource.Quantity).MilliValue)
	if hasCPU {
		cpu /= siblings
	} else {
		cpu, hasCPU = annotated(pod, AnnotationCPUUsage, (*resource.Quantity).MilliValue)
	}
	memory, hasMemory := annotated(pod, AnnotationMemoryUsage, (*resource.Quantity).Value)
	n := int64(len(pod.Spec.Containers))
	list := make([]ContainerUsage, 0, n)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		u := ContainerUsage{
			Name:     c.Name,
			MilliCPU: max(c.Resources.Requests.Cpu().MilliValue()/cpuShare, leastMilliCPU),
			Memory:   max(c.Resources.Requests.Memory().Value()/memoryShare, leastMemory),
		}
		if hasCPU {
			u.MilliCPU = cpu / n
		}
		if hasMemory {
			u.Memory = memory / n
		}
		list = append(list, u)
	}
	return list
}

// annotated returns a quantity that an annotation says, if it is one.
func annotated(pod *corev1.Pod, name string, value func(*resource.Quantity) int64) (int64, bool) {
	text, ok := pod.Annotations[name]
	if !ok {
		return 0, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return 0, false
	}
	return value(&quantity), true
}

// NodeUsage returns what a node uses that runs these pods, of those in used.
func NodeUsage(pods []*corev1.Pod, used map[types.UID][]ContainerUsage) ContainerUsage {
	sum := ContainerUsage{MilliCPU: nodeMilliCPU, Memory: nodeMemory}
	for _, pod := range pods {
		for _, u := range used[pod.UID] {
			sum.MilliCPU += u.MilliCPU
			sum.Memory += u.Memory
		}
	}
	return sum
}
