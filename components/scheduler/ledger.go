package scheduler

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/quota"
)

// ledger knows every node and what the pods bound to it have taken. A pod
// counts from the moment it is assumed, before the API server has confirmed
// the binding, so that two pods never get the same room.
//
// It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	nodes map[string]*account
	pods  map[types.UID]*charge
	// priorities counts pods by their priority.
	priorities map[int]int
	// nominations are what room is kept free for: pods without a node.
	nominations map[types.UID]nomination
	// changes counts the nodes that came or went.
	changes uint64
}

// account is one node's page. Pods may be charged to a node that is not
// known yet: events of different kinds have no order.
type account struct {
	node *corev1.Node // nil while the node is unknown
	// offers is what the node's status calls allocatable, read once for all pods that are
	// held against it.
	offers amounts
	taken  amounts
	ports  portSet // taken
	// byPriority is taken, without ports, by the priority of those who have.
	byPriority map[int]*amounts
	// leaving are the charges of pods that are.
	leaving map[types.UID]*charge
	// nominated are the ledger's nominations for the node.
	nominated map[types.UID]nomination
}

// count has the account know of a charge beside its amounts; with sign -1 no more.
func (a *account) count(c *charge, sign int) {
	p := priority(c.pod)
	if a.byPriority == nil {
		a.byPriority = map[int]*amounts{}
	}
	if a.byPriority[p] == nil {
		a.byPriority[p] = &amounts{}
	}
	if a.byPriority[p].add(c.amounts, int64(sign)); a.byPriority[p].pods == 0 {
		delete(a.byPriority, p)
	}
	switch {
	case sign < 0:
		delete(a.leaving, c.pod.UID)
	case c.leaving:
		a.leave(c)
	}
}

// leave notes that a pod leaves.
func (a *account) leave(c *charge) {
	c.leaving = true
	if a.leaving == nil {
		a.leaving = map[types.UID]*charge{}
	}
	a.leaving[c.pod.UID] = c
}

// charge adds what a pod takes, or with sign -1 takes it back.
func (a *account) charge(c amounts, sign int) {
	a.taken.add(c, int64(sign))
	for _, port := range c.ports {
		a.ports.add(port, sign)
	}
}

// charge is what one pod takes, and where.
type charge struct {
	node    string
	amounts amounts
	// assumed: the binding has been decided here but not been observed yet.
	assumed bool
	// leaving: it is being deleted, or about to be.
	leaving bool
	pod     *corev1.Pod
}

// amounts of what the filter compares, in millicores, bytes and pods.
type amounts struct {
	milliCPU, memory, ephemeral, pods int64
	ports                             []hostPort // of a pod
	extended                          map[corev1.ResourceName]int64
}

func newLedger() *ledger {
	return &ledger{
		nodes: map[string]*account{}, pods: map[types.UID]*charge{}, priorities: map[int]int{}, nominations: map[types.UID]nomination{},
	}
}

func (l *ledger) account(name string) *account {
	a := l.nodes[name]
	if a == nil {
		a = &account{}
		l.nodes[name] = a
	}
	return a
}

// setNode records a node's present state.
func (l *ledger) setNode(node *corev1.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(node.Name)
	if a.node == nil {
		l.changes++
	}
	a.node, a.offers = node, offersOf(node)
}

// nodeChanges counts the nodes that have come or gone so far.
func (l *ledger) nodeChanges() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// removeNode forgets a node; the charges of its pods stay until they go.
func (l *ledger) removeNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.nodes[name]; a != nil {
		l.changes++
		a.node = nil
		l.dropIfEmpty(name, a)
	}
}

// assume charges a pod to a node before its binding is known to have
// succeeded. It reports false, and changes nothing, if the pod has a node
// already: what was observed while the decision was made is the truth, and
// must not be taken back as an assumption later.
func (l *ledger) assume(pod *corev1.Pod, node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.pods[pod.UID]; ok {
		return false
	}
	l.put(pod.UID, &charge{node: node, amounts: amountsOf(pod), assumed: true, pod: pod})
	return true
}

// observe records a bound pod as the API server shows it. A pod that has
// ended holds nothing. It reports whether room may have been given back.
func (l *ledger) observe(pod *corev1.Pod) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended(pod) {
		return l.drop(pod.UID)
	}
	return l.put(pod.UID, &charge{node: pod.Spec.NodeName, amounts: amountsOf(pod), pod: pod, leaving: pod.DeletionTimestamp != nil})
}

// release forgets a pod, and reports whether it held room.
func (l *ledger) release(uid types.UID) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(uid)
}

// releaseAssumed takes an assumption back after a binding failed, and reports
// whether it did. What has been observed meanwhile stays: then the binding
// did succeed.
func (l *ledger) releaseAssumed(uid types.UID) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.pods[uid]
	return ok && c.assumed && l.drop(uid)
}

// charged reports whether the pod has a node already.
func (l *ledger) charged(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.pods[uid]
	return ok
}

// put replaces a pod's charge and reports whether another one was taken back
// for it, or room is not kept free for it any more.
func (l *ledger) put(uid types.UID, c *charge) (freed bool) {
	freed = l.withdraw(uid) // it may have another node than the one on which room was kept free
	if old, ok := l.pods[uid]; ok {
		c.leaving = c.leaving || old.leaving
		if old.node == c.node && old.amounts.equal(c.amounts) {
			l.count(old, -1)
			l.count(c, 1)
			l.pods[uid] = c
			return freed
		}
		freed = l.drop(uid) || freed
	}
	l.count(c, 1)
	l.pods[uid] = c
	l.account(c.node).charge(c.amounts, 1)
	return freed
}

// count has the ledger know of a charge by its priority, and whether the pod leaves; with sign -1 no more.
func (l *ledger) count(c *charge, sign int) {
	l.account(c.node).count(c, sign)
	p := priority(c.pod)
	if l.priorities[p] += sign; l.priorities[p] == 0 {
		delete(l.priorities, p)
	}
}

func (l *ledger) drop(uid types.UID) bool {
	withdrawn := l.withdraw(uid)
	c, ok := l.pods[uid]
	if !ok {
		return withdrawn
	}
	delete(l.pods, uid)
	l.count(c, -1)
	a := l.account(c.node)
	a.charge(c.amounts, -1)
	l.dropIfEmpty(c.node, a)
	return true
}

func (l *ledger) dropIfEmpty(name string, a *account) {
	if a.node == nil && a.taken.pods == 0 && len(a.nominated) == 0 {
		delete(l.nodes, name)
	}
}

// each calls fn with the account of every known node, under the ledger's lock: fn must not
// call back.
func (l *ledger) each(fn func(a *account)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.nodes {
		if a.node != nil {
			fn(a)
		}
	}
}

// offersOf is what pods may take on a node.
func offersOf(node *corev1.Node) amounts {
	var offers amounts
	for name, quantity := range node.Status.Allocatable {
		if name == corev1.ResourcePods {
			offers.pods = quantity.Value()
		} else {
			offers.set(name, quantity)
		}
	}
	return offers
}

// amountsOf sums what the pod requests, init containers and overhead
// included. Host ports are those of containers that run as long as the pod does.
func amountsOf(pod *corev1.Pod) amounts {
	want := amounts{pods: 1}
	for name, quantity := range quota.PodRequests(pod) {
		want.set(name, quantity)
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			want.addPorts(c.Ports)
		}
	}
	for i := range pod.Spec.Containers {
		want.addPorts(pod.Spec.Containers[i].Ports)
	}
	return want
}

func (a *amounts) addPorts(ports []corev1.ContainerPort) {
	for _, port := range ports {
		if port.HostPort != 0 {
			a.ports = append(a.ports, hostPort{port.HostIP, port.Protocol, port.HostPort})
		}
	}
}

// set sets the amount of a resource other than pods.
func (a *amounts) set(name corev1.ResourceName, quantity resource.Quantity) {
	switch name {
	case corev1.ResourceCPU:
		a.milliCPU = quantity.MilliValue()
	case corev1.ResourceMemory:
		a.memory = quantity.Value()
	case corev1.ResourceEphemeralStorage:
		a.ephemeral = quantity.Value()
	default:
		// A pod may want nothing of ten thousands of names, which each node would be asked for.
		value := quantity.Value()
		if value == 0 {
			return
		}
		if a.extended == nil {
			a.extended = map[corev1.ResourceName]int64{}
		}
		a.extended[name] = value
	}
}

// add adds sign times o, but for its ports. What comes to nothing is forgotten: pods may invent names of resources.
func (a *amounts) add(o amounts, sign int64) {
	a.milliCPU += sign * o.milliCPU
	a.memory += sign * o.memory
	a.ephemeral += sign * o.ephemeral
	a.pods += sign * o.pods
	for name, value := range o.extended {
		sum := a.extended[name] + sign*value
		switch {
		case sum == 0:
			delete(a.extended, name)
		case a.extended == nil:
			a.extended = map[corev1.ResourceName]int64{name: sum}
		default:
			a.extended[name] = sum
		}
	}
}

func (a amounts) equal(o amounts) bool {
	if a.milliCPU != o.milliCPU || a.memory != o.memory || a.ephemeral != o.ephemeral || len(a.ports) != len(o.ports) || len(a.extended) != len(o.extended) {
		return false
	}
	for i := range a.ports {
		if a.ports[i] != o.ports[i] {
			return false
		}
	}
	for name, value := range a.extended {
		if o.extended[name] != value {
			return false
		}
	}
	return true
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
