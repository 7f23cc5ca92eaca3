package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
)

// preemption is what has to leave a node so that a more important pod fits there.
type preemption struct {
	node    string
	victims []*corev1.Pod
	// violations is how many of them a budget keeps from leaving.
	violations int
}

// preempt has less important pods leave a node for a pod that fits nowhere, if that helps. The pod is nominated for the node:
// none that is not more important takes the room that becomes free. It is tried again when there is room. ended reports that the
// pod waits for no node any more, although its status may name one: nothing helps.
func (s *Scheduler) preempt(ctx context.Context, pod *corev1.Pod, rooms uint64) (ended bool, err error) {
	if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever || tooMany(&pod.Spec) != "" {
		return false, nil
	}
	request := newRequest(pod)
	if s.ledger.awaitsVictims(&request) {
		return false, nil
	}
	p := s.helpful(&request, rooms)
	if p == nil {
		withdrawn := s.ledger.withdrawn(pod.UID)
		if withdrawn { // others may fit into what was kept free for it
			s.retryWaiting()
		}
		return withdrawn || pod.Status.NominatedNodeName != "", nil
	}
	if !s.nominate(pod, p.node, p.victims...) {
		return false, nil
	}
	if s.ledger.withdrawBelow(p.node, request.priority) { // they look for another node at once, as with kube-scheduler
		s.retryWaiting()
	}
	select {
	case s.binders <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	s.binding.Go(func() {
		defer func() { <-s.binders }()
		s.evict(ctx, pod, p)
	})
	return false, nil
}

// helpful returns the preemption for a request, or nil. It looks at no pod if there was none for a request like this one since
// room last appeared.
func (s *Scheduler) helpful(request *request, rooms uint64) *preemption {
	if !s.ledger.hasBelow(request.priority) {
		return nil
	}
	nodes := s.ledger.nodeChanges()
	if _, ok := s.futile.find(request, rooms, nodes); ok {
		return nil
	}
	p := s.ledger.preemptionFor(request, s.budgets.Lister().List("", nil))
	if p == nil {
		s.futile.add(request, rooms, nodes, "")
	}
	return p
}

// nominate keeps room on a node free for a pod, for which victims leave, unless the pod has gone meanwhile or has a node: then
// the handler may have looked for a nomination before there was one.
func (s *Scheduler) nominate(pod *corev1.Pod, node string, victims ...*corev1.Pod) bool {
	freed := s.ledger.nominate(pod, node, victims...)
	known, ok := s.pods.Lister().Get(pod.Namespace, pod.Name)
	waits := ok && known.UID == pod.UID && s.responsible(known)
	if !waits {
		freed = s.ledger.withdrawn(pod.UID) || freed
		s.ledger.stay(victims)
	}
	if freed {
		s.retryWaiting()
	}
	return waits
}

// evict deletes the victims of a preemption, as long as they leave for something: until one of them cannot be deleted, or the
// pod has found room elsewhere or has gone. The ledger forgets that the others were to leave, so that the next decision may be
// another one.
func (s *Scheduler) evict(ctx context.Context, pod *corev1.Pod, p *preemption) {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	for i, victim := range p.victims {
		if victim.DeletionTimestamp != nil {
			continue
		}
		if s.ledger.nominatedFor(pod.UID) != p.node {
			s.ledger.stay(p.victims[i:])
			return
		}
		if err := s.evictOne(ctx, victim); err != nil {
			s.log.Warn("a pod could not be deleted for a more important one", "pod", controller.KeyOf(victim), "for", controller.KeyOf(pod), "error", err)
			s.ledger.stay(p.victims[i:])
			s.retryWaiting()
			return
		}
		s.events.Normal(victim, "Preempted", "Preempted by pod %s on node %s", pod.UID, p.node)
	}
}

// evictOne says on a pod why it is deleted, and deletes it. The uid guards another one of the same name.
func (s *Scheduler) evictOne(ctx context.Context, victim *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": victim.UID}, "status": map[string]any{
		"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message:            fmt.Sprintf("%s: preempting to accommodate a higher priority pod", s.opts.Name),
			LastTransitionTime: metav1.Now(), ObservedGeneration: victim.Generation,
		}},
	}})
	if err != nil {
		return err
	}
	pods := s.podAPI.Namespace(victim.Namespace)
	_, err = pods.Patch(ctx, victim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil || apierrors.IsConflict(err) { // others write the status, too, and the deletion looks at the uid for itself
		err = pods.Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has gone
	}
	return err
}

// preemptionFor returns the preemption that does the least harm, or nil if none makes room for a request.
func (l *ledger) preemptionFor(r *request, pdbs []*policyv1.PodDisruptionBudget) *preemption {
	l.mu.Lock()
	defer l.mu.Unlock()
	below := map[string][]*charge{} // by the nodes that come into question
	for name, a := range l.nodes {
		if a.node != nil && r.mayFit(a) && r.unfit(a.node) == "" {
			below[name] = nil
		}
	}
	if len(below) == 0 {
		return nil
	}
	for _, c := range l.pods {
		if priority(c.pod) < r.priority {
			if charges, ok := below[c.node]; ok {
				below[c.node] = append(charges, c)
			}
		}
	}
	var best *preemption
	kept := budgetsOf(pdbs)
	for name, charges := range below {
		if p := r.preemptionOn(l.nodes[name], charges, kept); p != nil && (best == nil || compareHarm(p, best) < 0) {
			best = p
		}
	}
	return best
}

// mayFit reports whether a node without all that is less important would have enough of everything but ports. It costs as little
// as refusal does: 10,000 pods for which no preemption helps ask it whenever room appears.
func (r *request) mayFit(a *account) bool {
	trial, helps := *a.keptFree(r), false
	trial.taken.extended, trial.ports = maps.Clone(trial.taken.extended), nil
	for p, taken := range a.byPriority {
		if p < r.priority {
			trial.taken.add(*taken, -1)
			helps = true
		}
	}
	return helps && r.lacking(&trial) == ""
}

// preemptionOn returns what has to leave a node, or nil if it does not help that all that is less important leaves. What need not
// leave stays: first what a budget keeps, and then the most important.
func (r *request) preemptionOn(a *account, below []*charge, kept budgets) *preemption {
	trial := a.keptFree(r).clone()
	for _, c := range below {
		trial.charge(c.amounts, -1)
	}
	if r.lacking(trial) != "" {
		return nil
	}
	slices.SortFunc(below, compareImportance)
	p := &preemption{node: a.node.Name}
	violating := kept.violating(below)
	for _, violates := range []bool{true, false} {
		for _, c := range below {
			if violating[c.pod] != violates {
				continue
			}
			trial.charge(c.amounts, 1)
			if r.lacking(trial) == "" {
				continue
			}
			trial.charge(c.amounts, -1)
			p.victims = append(p.victims, c.pod)
			if violates {
				p.violations++
			}
		}
	}
	if len(p.victims) == 0 {
		return nil // there is room: the pod was decided on a moment ago, and is soon again
	}
	return p
}

// compareImportance sorts what stays before what may leave: by priority, and then what has run longer. What is about to leave
// comes last.
func compareImportance(a, b *charge) int {
	if a.leaving != b.leaving {
		if b.leaving {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(priority(b.pod), priority(a.pod)), compareStart(a.pod, b.pod), cmp.Compare(a.pod.UID, b.pod.UID))
}

// compareStart sorts pods by when they began; those that have not are last.
func compareStart(a, b *corev1.Pod) int {
	x, y := a.Status.StartTime, b.Status.StartTime
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	return x.Compare(y.Time)
}

// compareHarm sorts preemptions as kube-scheduler does: the fewest violations of budgets, the lowest priority that the most important victim has, the lowest sum of
// priorities, the fewest victims, the most important ones that began last. Names break ties, so that a decision can be repeated.
func compareHarm(a, b *preemption) int {
	return cmp.Or(
		cmp.Compare(a.violations, b.violations), cmp.Compare(highest(a.victims), highest(b.victims)), cmp.Compare(sum(a.victims), sum(b.victims)), cmp.Compare(len(a.victims), len(b.victims)),
		-compareStart(first(a.victims), first(b.victims)), cmp.Compare(a.node, b.node),
	)
}

func highest(victims []*corev1.Pod) int {
	most := math.MinInt
	for _, pod := range victims {
		most = max(most, priority(pod))
	}
	return most
}

// sum adds priorities, each counted from the lowest that there can be, so that many victims are more than few.
func sum(victims []*corev1.Pod) (total int) {
	for _, pod := range victims {
		total += priority(pod) - math.MinInt32
	}
	return total
}

// first returns the one of the most important victims that began first.
func first(victims []*corev1.Pod) *corev1.Pod {
	return slices.MinFunc(victims, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), compareStart(a, b))
	})
}
