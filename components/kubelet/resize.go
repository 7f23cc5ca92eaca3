package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
)

// resize has a pod that was admitted hold what its spec asks for now (pods/resize), or returns why the node does not give it
// that yet. What a pod gives back, others may wait for.
func (k *Kubelet) resize(pod *corev1.Pod) *refusal {
	if pod.Status.StartTime == nil || pod.DeletionTimestamp != nil || ended(pod) {
		return nil
	}
	node, known := k.node.Lister().Get("", k.opts.NodeName)
	if !known {
		node = k.nodeObject() // as the heartbeat will make it again
	}
	why, changed := k.allocations.resize(pod, node)
	if changed {
		k.resizeOthers()
	}
	return why
}

// resizeOthers has the pods looked at again that wait for more than the node had left.
func (k *Kubelet) resizeOthers() {
	for _, key := range k.allocations.waiting() {
		k.loop.Add(key)
	}
}

// resize has a pod hold what it asks for now if the node has that, and reports whether it holds something else than before.
func (a *allocations) resize(pod *corev1.Pod, node *corev1.Node) (why *refusal, changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, ok := a.pods[pod.UID]
	if _, waits := a.deferred[pod.UID]; !ok || held.generation == pod.Generation && !waits {
		return nil, false
	}
	delete(a.deferred, pod.UID)
	wanted := allocationOf(pod)
	a.count(held, -1)
	if slices.Equal(held.amounts, wanted.amounts) {
		a.put(pod.UID, wanted) // something else of the spec has changed
		return nil, false
	}
	if why = a.lacking(wanted, node.Status.Allocatable); why == nil {
		a.put(pod.UID, wanted)
		return nil, true
	}
	a.put(pod.UID, held)
	a.deferred[pod.UID] = controller.KeyOf(pod)
	why.reason = corev1.PodReasonDeferred
	if new(allocations).lacking(wanted, node.Status.Allocatable) != nil {
		why.reason = corev1.PodReasonInfeasible
	}
	return why, false
}

// waiting returns the pods whose resize the node had no room for.
func (a *allocations) waiting() (keys []controller.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range a.deferred {
		keys = append(keys, key)
	}
	return keys
}

// resize has the status show what the containers have been given: what the spec asks for, unless the node refuses that.
// A container that is given something else goes on running.
func (p *play) resize() {
	if why := p.seen.refused; why != nil {
		p.defers(why)
		return
	}
	resized := give(p.pod.Spec.InitContainers, p.status.InitContainerStatuses)
	resized = give(p.pod.Spec.Containers, p.status.ContainerStatuses) || resized
	before := len(p.status.Conditions)
	p.status.Conditions = slices.DeleteFunc(p.status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if resized {
		p.say(corev1.EventTypeNormal, "ResizeCompleted", "Pod resize completed")
	}
	p.moved = p.moved || resized || len(p.status.Conditions) < before
}

// give has the statuses of containers show what their specs ask for, and reports whether one that showed something shows
// something else.
func give(containers []corev1.Container, statuses []corev1.ContainerStatus) (resized bool) {
	for i := range containers {
		s, asked := &statuses[i], &containers[i].Resources
		if s.State.Terminated != nil || s.Resources != nil && equality.Semantic.DeepEqual(s.Resources, asked) {
			continue
		}
		resized = resized || s.Resources != nil
		s.Resources, s.AllocatedResources = asked.DeepCopy(), asked.Requests.DeepCopy()
	}
	return resized
}

// defers has the condition PodResizePending say why the node does not give the pod what it asks for.
func (p *play) defers(why *refusal) {
	c := corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: why.reason, Message: why.message,
		LastTransitionTime: metav1.NewTime(p.now), ObservedGeneration: p.pod.Generation,
	}
	i := slices.IndexFunc(p.status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if i < 0 {
		p.status.Conditions, i = append(p.status.Conditions, corev1.PodCondition{}), len(p.status.Conditions)
	}
	old := &p.status.Conditions[i]
	if old.Reason == c.Reason {
		if c.LastTransitionTime = old.LastTransitionTime; old.ObservedGeneration == c.ObservedGeneration {
			return // no write for each change of how much is free
		}
	}
	*old, p.moved = c, true
	p.say(corev1.EventTypeWarning, "Resize"+why.reason, "Pod resize %s: %s", why.reason, why.message)
}

// asAllocated is a pod as it was admitted and resized so far: what its containers show, where that is not what they ask for.
func asAllocated(pod *corev1.Pod) *corev1.Pod {
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending }) {
		return pod
	}
	// No generation: the spec's has not been decided about by this kubelet.
	held := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Spec: *pod.Spec.DeepCopy(), Status: *pod.Status.DeepCopy()}
	alignAll(held, &held.Status)
	take := func(containers []corev1.Container, statuses []corev1.ContainerStatus) {
		for i := range containers {
			if s := &statuses[i]; s.Resources != nil {
				containers[i].Resources.Requests = s.AllocatedResources
			}
		}
	}
	take(held.Spec.InitContainers, held.Status.InitContainerStatuses)
	take(held.Spec.Containers, held.Status.ContainerStatuses)
	return held
}
