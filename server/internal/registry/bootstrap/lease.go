package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

const (
	// identityLabel marks the Leases of API servers, with identityValue.
	identityLabel = "apiserver.kubernetes.io/identity"
	identityValue = "kube-apiserver"
	// leaseDuration is kube-apiserver's. A Lease that was not renewed for so long is nobody's.
	leaseDuration = time.Hour
	// renewal is far below leaseDuration. kube-apiserver renews every 10 s; each renewal is a
	// write to the disk, and the only one of an idle server.
	renewal = time.Minute
)

// Lease is the Lease in kube-system by which one can tell which servers run. It is safe for
// concurrent use.
type Lease struct {
	leases registry.Registry
	now    func() metav1.Time
	log    *slog.Logger
	lease  coordinationv1.Lease // as it should be, but for the time

	mu       sync.Mutex // held during writes, so that none follows the release
	released bool
}

// NewLease makes the Lease of the server at endpoint on a host. Servers of one host have one
// each. nil: Leases are not served.
func NewLease(set *registry.Set, host string, endpoint netip.AddrPort, log *slog.Logger) *Lease {
	leases, ok := set.Lookup(coordinationv1.GroupName, "v1", "leases")
	if !ok {
		return nil
	}
	const idBytes = 16
	sum := sha256.Sum256([]byte(host + "/" + endpoint.String()))
	name := "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:idBytes]))
	labels := map[string]string{identityLabel: identityValue}
	if len(validation.IsValidLabelValue(host)) == 0 {
		labels[corev1.LabelHostname] = host
	}
	return &Lease{leases: leases, now: set.Now, log: log, lease: coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: labels},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name + "_" + string(uuid.NewUUID())), LeaseDurationSeconds: new(int32(leaseDuration / time.Second)),
		},
	}}
}

// Claim creates the Lease, or takes over that of a server which ran at the same place before.
// It renews it, too. After Release it does nothing.
func (l *Lease) Claim(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil
	}
	_, err := l.leases.Update(ctx, l.lease.Namespace, l.lease.Name, func(current resource.Object) (resource.Object, error) {
		lease := l.lease.DeepCopy()
		if current != nil {
			lease = current.DeepCopyObject().(*coordinationv1.Lease)
			if lease.Labels == nil {
				lease.Labels = map[string]string{}
			}
			for key, value := range l.lease.Labels {
				lease.Labels[key] = value
			}
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = l.lease.Spec.HolderIdentity, l.lease.Spec.LeaseDurationSeconds
		}
		at := metav1.NewMicroTime(l.now().Time)
		lease.Spec.RenewTime = &at
		return lease, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
	if err != nil {
		return fmt.Errorf("write the lease kube-system/%s of this server: %w", l.lease.Name, err)
	}
	return nil
}

// Content is Claim as the NamespaceContent of kube-system.
func (l *Lease) Content(ctx context.Context, namespace string) error {
	if namespace != metav1.NamespaceSystem {
		return nil
	}
	return l.Claim(ctx)
}

// Keep renews the Lease until ctx ends, and removes those of servers that have ended without
// releasing theirs. It is called after Claim.
func (l *Lease) Keep(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for sinceSweep := leaseDuration; ; sinceSweep += renewal {
		if sinceSweep >= leaseDuration {
			sinceSweep = 0
			l.warn(ctx, l.sweep(ctx))
		}
		select {
		case <-ticker.C:
			l.warn(ctx, l.Claim(ctx))
		case <-ctx.Done():
			return
		}
	}
}

func (l *Lease) warn(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		l.log.Warn("the leases of the API servers are not up to date", "error", err)
	}
}

// sweep removes the Leases of API servers that have expired.
func (l *Lease) sweep(ctx context.Context) error {
	snapshot, err := l.leases.Snapshot(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for object := range snapshot.Range(metav1.NamespaceSystem+"/", "") {
		lease, err := registry.DecodeAs[*coordinationv1.Lease](ctx, l.leases, object)
		if err != nil || lease.Labels[identityLabel] != identityValue || !l.expired(lease) {
			continue // one that cannot be read is not ours to judge
		}
		_, err = l.leases.DeleteAdmitted(ctx, lease.Namespace, lease.Name, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (l *Lease) expired(lease *coordinationv1.Lease) bool {
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second).Before(l.now().Time)
}

// Release removes the Lease: the server is about to stop. Another one's, at the same place, stays.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	current, err := l.leases.Get(ctx, l.lease.Namespace, l.lease.Name)
	if err == nil {
		lease, ok := current.(*coordinationv1.Lease)
		if !ok || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != *l.lease.Spec.HolderIdentity {
			return nil
		}
		_, err = l.leases.DeleteAdmitted(ctx, lease.Namespace, lease.Name, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
