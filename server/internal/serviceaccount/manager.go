package serviceaccount

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Kubernetes' kube-controller-manager publishes the ConfigMap RootCAName, too. Two that publish it run
// into each other's writes, and never rest if they do not agree on its content. So while a
// kube-controller-manager holds its lease in kube-system, the Keeper corrects no such ConfigMap, and
// creates one only where there is none a while after it was needed: the manager can be told not
// to. Levelwire's own controllers hold the same lease, but publish nothing.

const (
	managerLease = "kube-controller-manager"
	// publishAfter is how long a ConfigMap is left to a manager that runs. It takes one milliseconds.
	publishAfter = 5 * time.Second
	// defaultLease is how long a lease is held that does not say it: a manager's default.
	defaultLease = 15 * time.Second
	// ownPrefix begins the names by which Levelwire's components write.
	ownPrefix = "levelwire-"
)

// manager is what the Keeper knows of the kube-controller-manager. Its clock may differ from the
// server's, so it counts when its lease was seen to change, as other managers count.
type manager struct {
	runs  bool
	until time.Time // when it is taken for dead; of one that runs
}

// left returns how long it may be silent until it is taken for dead; 0 if none runs.
func (m *manager) left(now time.Time) time.Duration {
	if !m.runs {
		return 0
	}
	return max(m.until.Sub(now), 1) // at the end there is something to do
}

func (k *Keeper) managerChanged(ctx context.Context, event watchcache.Event) error {
	k.manager.until = time.Time{} // it has given its lease up, unless what follows says another thing
	if event.Type == watchcache.Deleted {
		return nil
	}
	leases, ok := k.accounts.set.Lookup(coordinationv1.GroupName, "v1", "leases")
	if !ok {
		return errors.New("serviceaccount: leases are not served")
	}
	lease, err := registry.DecodeAs[*coordinationv1.Lease](ctx, leases, event.Object)
	if err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || isOwn(lease) {
		return nil
	}
	held := defaultLease
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		held = time.Duration(*seconds) * time.Second
	}
	k.manager = manager{runs: true, until: time.Now().Add(held)}
	return nil
}

// readManager reads what the lease has become, once more, if a ConfigMap has to be compared: the events
// of two kinds come in no order, and a manager may have taken the lease before the namespace was made.
func (k *Keeper) readManager(ctx context.Context, lease cursor) error {
	if !k.comparesRootCA() {
		return nil
	}
	leases, ok := k.accounts.set.Lookup(coordinationv1.GroupName, "v1", "leases")
	if !ok {
		return errors.New("serviceaccount: leases are not served")
	}
	if _, err := leases.Snapshot(ctx); err != nil { // waits for every write of a lease that the server has acknowledged
		return err
	}
	return lease.read(ctx)
}

func (k *Keeper) comparesRootCA() bool {
	for t := range k.pending {
		if t.rootCA {
			return true
		}
	}
	return false
}

// reviewManager looks at every namespace again when the manager has ended: nobody has corrected
// anything while it ran.
func (k *Keeper) reviewManager(ctx context.Context) error {
	if !k.manager.runs || time.Now().Before(k.manager.until) {
		return nil
	}
	k.manager.runs = false
	namespaces, ok := k.accounts.set.Lookup("", "v1", "namespaces")
	if !ok {
		return nil
	}
	snapshot, err := namespaces.Snapshot(ctx)
	if err != nil {
		return err
	}
	for o := range snapshot.Range("", "") {
		k.add(task{namespace: o.Attributes.Name, rootCA: true})
	}
	return nil
}

// isOwn reports whether Levelwire's controllers hold a lease: the field of the holder is theirs.
func isOwn(lease *coordinationv1.Lease) bool {
	return slices.ContainsFunc(lease.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(e.Manager, ownPrefix) && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:holderIdentity"`)
	})
}
