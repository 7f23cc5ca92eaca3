package scheduler

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nomination keeps room on a node free for a pod, for which others leave it.
type nomination struct {
	node     string
	amounts  amounts
	priority int
}

// nominate keeps room on a node free for a pod, and notes which pods leave for it. It reports whether room on another node
// is not kept free any more.
func (l *ledger) nominate(pod *corev1.Pod, node string, victims ...*corev1.Pod) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, victim := range victims {
		if c, ok := l.pods[victim.UID]; ok {
			l.account(c.node).leave(c)
		}
	}
	if _, ok := l.pods[pod.UID]; ok {
		return false // it has a node
	}
	freed = l.withdraw(pod.UID)
	n := nomination{node: node, amounts: amountsOf(pod), priority: priority(pod)}
	l.nominations[pod.UID] = n
	a := l.account(node)
	if a.nominated == nil {
		a.nominated = map[types.UID]nomination{}
	}
	a.nominated[pod.UID] = n
	return freed
}

// withdraw keeps no room free for a pod any more, and reports whether it was. It needs mu.
func (l *ledger) withdraw(uid types.UID) bool {
	n, ok := l.nominations[uid]
	if !ok {
		return false
	}
	delete(l.nominations, uid)
	a := l.account(n.node)
	delete(a.nominated, uid)
	l.dropIfEmpty(n.node, a)
	return true
}

// withdrawn is withdraw for those who do not have mu.
func (l *ledger) withdrawn(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withdraw(uid)
}

// withdrawBelow keeps no room on a node free any more for pods that are less important than one for which others leave it. It
// reports whether there were any.
func (l *ledger) withdrawBelow(node string, priority int) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, n := range l.nominations {
		if n.node == node && n.priority < priority {
			freed = l.withdraw(uid) || freed
		}
	}
	return freed
}

// nominatedFor returns the node on which room is kept free for a pod, or "".
func (l *ledger) nominatedFor(uid types.UID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nominations[uid].node
}

// awaitsVictims reports whether a pod has a node that less important pods are about to leave, and on which it may run: a node
// that does not answer any more keeps them for ever.
func (l *ledger) awaitsVictims(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.nominations[r.pod.UID]
	if !ok || l.nodes[n.node].node == nil || r.unfit(l.nodes[n.node].node) != "" {
		return false
	}
	for _, c := range l.nodes[n.node].leaving {
		if priority(c.pod) < n.priority {
			return true
		}
	}
	return false
}

// stay notes that pods do not leave, after all, except those that are being deleted.
func (l *ledger) stay(victims []*corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, victim := range victims {
		if c, ok := l.pods[victim.UID]; ok && c.pod.DeletionTimestamp == nil {
			c.leaving = false
			delete(l.account(c.node).leaving, victim.UID)
		}
	}
}

// hasBelow reports whether a pod has a node that is less important.
func (l *ledger) hasBelow(priority int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.priorities {
		if p < priority {
			return true
		}
	}
	return false
}

// keptFree returns an account in which what is kept free for pods that are at least as important as the request's is taken.
func (a *account) keptFree(r *request) *account {
	with := a
	for uid, n := range a.nominated {
		if uid == r.pod.UID || n.priority < r.priority {
			continue
		}
		if with == a {
			with = a.clone()
		}
		with.charge(n.amounts, 1)
	}
	return with
}

// clone copies what charge changes.
func (a *account) clone() *account {
	c := *a
	c.taken.extended, c.ports = maps.Clone(a.taken.extended), maps.Clone(a.ports)
	return &c
}
