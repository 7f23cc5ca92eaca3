package server_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestLeaseOfTheServer: a server that is ready has a Lease in kube-system, as kube-apiserver has. It removes it
// when it stops, takes over the one of a server that ran at the same place, and removes those that have expired.
func TestLeaseOfTheServer(t *testing.T) {
	ctx, dir, port := deadline(t), t.TempDir(), reservePort(t)
	first := start(t, server.Config{DataDir: dir, SecurePort: port})
	leases := client.For[*coordinationv1.Lease](first.client(t)).Namespace("kube-system")
	own := func() *coordinationv1.Lease {
		t.Helper()
		list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("leases %v (%v), want that of the server", list, err)
		}
		return list.Items[0]
	}
	lease := own()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(lease.Name, "apiserver-") || !strings.HasPrefix(*lease.Spec.HolderIdentity, lease.Name+"_") ||
		*lease.Spec.LeaseDurationSeconds != 3600 || lease.Labels["kubernetes.io/hostname"] != host || time.Since(lease.Spec.RenewTime.Time) > testTimeout {
		t.Errorf("lease %+v", lease)
	}

	// What servers leave behind that are killed: one at this place, others elsewhere, and what is no server's.
	long := metav1.NewMicroTime(time.Now().Add(-2 * time.Hour))
	leave := func(name string, change func(*coordinationv1.Lease)) {
		t.Helper()
		left := lease.DeepCopy()
		left.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: lease.Labels}
		left.Spec.RenewTime = &long
		change(left)
		if _, err := leases.Create(ctx, left, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	leave("expired", func(*coordinationv1.Lease) {})
	leave("never-renewed", func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil })
	leave("alive", func(l *coordinationv1.Lease) { l.Spec.RenewTime = lease.Spec.RenewTime })
	leave("of-a-controller", func(l *coordinationv1.Lease) { l.Labels = nil })
	first.stop(t)

	second := start(t, server.Config{DataDir: dir, SecurePort: port})
	leases = client.For[*coordinationv1.Lease](second.client(t)).Namespace("kube-system")
	again, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
	if err != nil || again.UID == lease.UID {
		t.Errorf("the lease of the server that has stopped is still there: %+v (%v)", again, err)
	}
	awaitNoLease(ctx, t, leases, "expired")
	awaitNoLease(ctx, t, leases, "never-renewed")
	for _, name := range []string{"alive", "of-a-controller"} {
		if _, err := leases.Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}

	// A server that was killed has not released its own.
	again.Spec.HolderIdentity = new("another")
	if _, err := leases.Update(ctx, again, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second.stop(t)
	third := start(t, server.Config{DataDir: dir, SecurePort: port})
	taken, err := client.For[*coordinationv1.Lease](third.client(t)).Namespace("kube-system").Get(ctx, lease.Name, metav1.GetOptions{})
	if err != nil || taken.UID != again.UID || *taken.Spec.HolderIdentity == "another" {
		t.Errorf("the lease that was left is not taken over: %+v (%v)", taken, err)
	}
}

// awaitNoLease waits until a Lease has gone.
func awaitNoLease(ctx context.Context, t *testing.T, leases client.Resource[*coordinationv1.Lease], name string) {
	t.Helper()
	w, err := leases.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := leases.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return
	}
	for {
		event, err := w.Next()
		if err != nil {
			t.Fatalf("lease %s: %v", name, err)
		}
		if event.Type == "DELETED" {
			return
		}
	}
}
