package resourcequota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/quota"
)

// ledger sums what the objects of each namespace use of its quotas. It is kept by
// events alone, and never reads a cache, which may be ahead of the events: so each
// change of an object counts once.
type ledger struct {
	mu         sync.Mutex
	namespaces map[string]*namespace
}

func newLedger() *ledger { return &ledger{namespaces: map[string]*namespace{}} }

// namespace holds the objects and the quotas of one namespace.
type namespace struct {
	objects  map[objectKey]*object
	accounts map[string]*account // by the quota's name
}

type objectKey struct {
	resource schema.GroupResource
	name     string
}

// object is an object as the last event showed it, and what it used then: nil as long
// as its namespace has no quotas, which saves the memory.
type object struct {
	evaluator quota.Evaluator
	value     any
	usage     corev1.ResourceList
	ends      time.Time // from when on it uses less; zero: that is not known
}

// account is what is known of one quota.
type account struct {
	uid  types.UID
	spec corev1.ResourceQuotaSpec
	// counted is what the objects use of the quota.
	counted corev1.ResourceList
	// freed is what they have ceased to use, and what has not been taken off the quota's
	// status yet.
	freed corev1.ResourceList
	// claimed is when the used amounts last grew, or when the quota was first seen.
	claimed time.Time
}

// note records a new state of an object: nil if it is gone. It returns the names of the
// quotas of which the object uses more or less than before, or will from another time on.
func (l *ledger) note(evaluator quota.Evaluator, in, name string, value any, now time.Time) (changed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.of(in)
	changed = n.note(evaluator, name, value, now)
	l.forgetIfEmpty(in)
	return changed
}

// forgetIfEmpty forgets a namespace without objects and quotas. The lock must be held.
func (l *ledger) forgetIfEmpty(in string) {
	if n := l.namespaces[in]; n != nil && len(n.objects) == 0 && len(n.accounts) == 0 {
		delete(l.namespaces, in)
	}
}

// account returns what is known of a quota, nil if that is nothing. The lock must be
// held.
func (l *ledger) account(in, name string) *account {
	if n := l.namespaces[in]; n != nil {
		return n.accounts[name]
	}
	return nil
}

// of returns the namespace's part, and makes it if there is none. The lock must be held.
func (l *ledger) of(name string) *namespace {
	n := l.namespaces[name]
	if n == nil {
		n = &namespace{objects: map[objectKey]*object{}, accounts: map[string]*account{}}
		l.namespaces[name] = n
	}
	return n
}

func (n *namespace) note(evaluator quota.Evaluator, name string, value any, now time.Time) (changed []string) {
	key := objectKey{evaluator.Resource(), name}
	before, after := n.objects[key], (*object)(nil)
	if value == nil {
		delete(n.objects, key)
	} else {
		after = &object{evaluator: evaluator, value: value, ends: endOf(value, now)}
		if len(n.accounts) > 0 {
			after.usage = evaluator.Usage(value, now)
		}
		n.objects[key] = after
	}
	ends := after != nil && !after.ends.IsZero() && (before == nil || !before.ends.Equal(after.ends))
	for quotaName, a := range n.accounts {
		had, has := before.usageOf(a), after.usageOf(a)
		more, less := quota.Increase(has, had), quota.Increase(had, has)
		if len(more) == 0 && len(less) == 0 {
			if ends && len(has) > 0 { // the controller comes back when it ends
				changed = append(changed, quotaName)
			}
			continue
		}
		quota.Add(a.counted, more)
		quota.Subtract(a.counted, less)
		quota.Add(a.freed, less)
		changed = append(changed, quotaName)
	}
	return changed
}

// usageOf returns what the object uses of a quota; o may be nil.
func (o *object) usageOf(a *account) corev1.ResourceList {
	if o == nil || !o.evaluator.InScopes(&corev1.ResourceQuota{Spec: a.spec}, o.value) {
		return nil
	}
	return quota.Mask(o.usage, a.spec.Hard)
}

// endOf returns when a deleted pod ceases to use anything although it still exists.
func endOf(value any, now time.Time) time.Time {
	if pod, ok := value.(*corev1.Pod); ok {
		if end, deleted := quota.EndOfGrace(pod); deleted && !now.After(end) {
			return end
		}
	}
	return time.Time{}
}

// expire looks again at the pods of a namespace whose time has ended, and returns the
// quotas that this changes. next is when the next one ends; zero if none will.
func (l *ledger) expire(in string, now time.Time) (changed []string, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.namespaces[in]
	if n == nil {
		return nil, time.Time{}
	}
	for key, o := range n.objects {
		switch {
		case o.ends.IsZero():
		case now.After(o.ends):
			changed = append(changed, n.note(o.evaluator, key.name, o.value, now)...)
		case next.IsZero() || o.ends.Before(next):
			next = o.ends
		}
	}
	return changed, next
}

// open begins to count for a quota, or anew if another quota has its name now or it
// limits other amounts.
func (l *ledger) open(q *corev1.ResourceQuota, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.of(q.Namespace)
	known := n.accounts[q.Name]
	if known != nil && known.uid == q.UID && sameNames(known.spec.Hard, q.Spec.Hard) {
		known.spec.Hard = q.Spec.Hard
		return
	}
	a := &account{uid: q.UID, spec: q.Spec, counted: corev1.ResourceList{}, freed: corev1.ResourceList{}, claimed: now}
	for _, o := range n.objects {
		if o.usage == nil {
			o.usage = o.evaluator.Usage(o.value, now)
		}
		quota.Add(a.counted, o.usageOf(a))
	}
	n.accounts[q.Name] = a
}

func sameNames(a, b corev1.ResourceList) bool {
	return len(a) == len(b) && len(quota.Mask(a, b)) == len(a)
}

// drop ends the counting for a quota that is gone.
func (l *ledger) drop(in, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.namespaces[in]; n != nil {
		delete(n.accounts, name)
		l.forgetIfEmpty(in)
	}
}

// sawClaim notes that the used amounts of a quota have grown, or may have.
func (l *ledger) sawClaim(in, name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.account(in, name); a != nil {
		a.claimed = now
	}
}

// forget forgets the objects of a resource that no quota names, without setting anything
// free: they have not gone.
func (l *ledger) forget(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.namespaces {
		for key, o := range n.objects {
			if key.resource != resource {
				continue
			}
			for _, a := range n.accounts {
				quota.Subtract(a.counted, o.usageOf(a))
			}
			delete(n.objects, key)
		}
		l.forgetIfEmpty(name)
	}
}

// balance is what the ledger says of a quota at one moment.
type balance struct {
	counted, freed corev1.ResourceList
	claimed        time.Time
}

func (l *ledger) balance(in, name string) (b balance, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(in, name)
	if a == nil {
		return balance{}, false
	}
	return balance{counted: a.counted.DeepCopy(), freed: a.freed.DeepCopy(), claimed: a.claimed}, true
}

// takeOff notes that freed amounts have been taken off a quota's status, or will be by a
// recount.
func (l *ledger) takeOff(in, name string, freed corev1.ResourceList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.account(in, name); a != nil {
		quota.Subtract(a.freed, freed)
	}
}
