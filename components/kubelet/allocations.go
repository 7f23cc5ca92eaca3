package kubelet

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/internal/quota"
)

// allocations are what the pods that the node has admitted hold of it, until they have ended or gone. What all
// hold together is kept beside what each does, so that one more pod costs what it asks for, and not what the others are.
//
// They are safe for concurrent use.
type allocations struct {
	mu    sync.Mutex
	pods  map[types.UID]allocation
	used  map[corev1.ResourceName]int64
	ports map[portNumber]map[string]int // how many pods have it, by address
	// deferred are the pods that ask for more than they hold, and than the node has left.
	deferred map[types.UID]controller.Key
}

// allocation is what one pod holds.
type allocation struct {
	generation int64    // of the spec that asked for it
	amounts    []amount // in the order in which they are compared
	ports      []hostPort
}

// amount is how much of a resource a pod holds: millicores, bytes, or pieces.
type amount struct {
	name  corev1.ResourceName
	value int64
}

// everyAddress is where a port is that names no address.
const everyAddress = "0.0.0.0"

type portNumber struct {
	protocol corev1.Protocol
	number   int32
}

type hostPort struct {
	portNumber
	address string
}

func newAllocations() *allocations {
	return &allocations{pods: map[types.UID]allocation{}, used: map[corev1.ResourceName]int64{}, ports: map[portNumber]map[string]int{}, deferred: map[types.UID]controller.Key{}}
}

// claim notes what a pod holds that was admitted before the kubelet was started.
func (a *allocations) claim(pod *corev1.Pod) {
	if a.holds(pod.UID) {
		return
	}
	held := allocationOf(asAllocated(pod))
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.pods[pod.UID]; !ok {
		a.put(pod.UID, held)
	}
}

// admit has a pod hold what it asks for, or returns why the node refuses it. What was admitted stays so.
func (a *allocations) admit(pod *corev1.Pod, node *corev1.Node) *refusal {
	wanted := allocationOf(pod)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.pods[pod.UID]; ok {
		return nil
	}
	if why := a.refusal(pod, wanted, node); why != nil {
		return why
	}
	a.put(pod.UID, wanted)
	return nil
}

// release takes back what a pod held, and reports whether it held anything.
func (a *allocations) release(pod types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, ok := a.pods[pod]
	if ok {
		a.drop(pod, held)
	}
	return ok
}

// holders returns the pods that hold anything.
func (a *allocations) holders() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.pods))
}

func (a *allocations) holds(pod types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.pods[pod]
	return ok
}

// drop needs a.mu.
func (a *allocations) drop(pod types.UID, held allocation) {
	delete(a.pods, pod)
	delete(a.deferred, pod)
	a.count(held, -1)
}

// put needs a.mu, and that what the pod held before is not counted any more.
func (a *allocations) put(pod types.UID, held allocation) {
	a.pods[pod] = held
	a.count(held, 1)
}

// count adds what a pod holds to what all do, or with sign -1 takes it back. It needs a.mu. What comes to
// nothing is forgotten: pods may invent names of resources.
func (a *allocations) count(held allocation, sign int) {
	for _, m := range held.amounts {
		if a.used[m.name] += int64(sign) * m.value; a.used[m.name] == 0 {
			delete(a.used, m.name)
		}
	}
	for _, p := range held.ports {
		at := a.ports[p.portNumber]
		if at == nil {
			at = map[string]int{}
			a.ports[p.portNumber] = at
		}
		if at[p.address] += sign; at[p.address] == 0 {
			delete(at, p.address)
		}
		if len(at) == 0 {
			delete(a.ports, p.portNumber)
		}
	}
}

// taken reports whether another pod has a port. It needs a.mu.
func (a *allocations) taken(p hostPort) bool {
	at := a.ports[p.portNumber]
	if p.address == everyAddress {
		return len(at) > 0
	}
	return at[p.address] > 0 || at[everyAddress] > 0
}

// comparedFirst are the resources of which the real kubelet says first that they lack.
var comparedFirst = []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// allocationOf is what a pod asks for.
func allocationOf(pod *corev1.Pod) allocation {
	asked := allocation{generation: pod.Generation, amounts: []amount{{corev1.ResourcePods, 1}}}
	for name, quantity := range quota.PodRequests(pod) {
		if value := valueOf(name, quantity); value > 0 {
			asked.amounts = append(asked.amounts, amount{name, value})
		}
	}
	slices.SortFunc(asked.amounts, func(x, y amount) int {
		return cmp.Or(cmp.Compare(precedence(x.name), precedence(y.name)), cmp.Compare(x.name, y.name))
	})
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; sidecar(c) {
			asked.addPorts(c.Ports)
		}
	}
	for i := range pod.Spec.Containers {
		asked.addPorts(pod.Spec.Containers[i].Ports)
	}
	return asked
}

func (a *allocation) addPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		if p := &ports[i]; p.HostPort > 0 {
			a.ports = append(a.ports, hostPort{portNumber{p.Protocol, p.HostPort}, cmp.Or(p.HostIP, everyAddress)})
		}
	}
}

func precedence(name corev1.ResourceName) int {
	if i := slices.Index(comparedFirst, name); i >= 0 {
		return i
	}
	return len(comparedFirst)
}

// valueOf is a quantity of a resource as it is compared.
func valueOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
