package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/wait"
)

// TestQuotaOfKilledServer kills the server with signal 9 while 64 writers fill a quota and
// empty it. There is never more than it allows; what the server had claimed and not
// written is given back by a recount.
func TestQuotaOfKilledServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits half a minute for a recount")
	}
	const allowed, writers, rounds = 20, 64, 3
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := newCluster(t)
	c.start(ctx, serve)
	c.start(ctx, "controllers")
	cl := c.client()
	defer cl.CloseIdleConnections()
	quotas, secrets := client.For[*corev1.ResourceQuota](cl).Namespace("default"), client.For[*corev1.Secret](cl).Namespace("default")
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": *resource.NewQuantity(allowed, resource.DecimalSI)},
	}}
	if _, err := quotas.Create(ctx, q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	uses := func(n int) func(*corev1.ResourceQuota) bool {
		return func(q *corev1.ResourceQuota) bool {
			used, known := q.Status.Used["count/secrets"]
			return known && used.Value() == int64(n)
		}
	}
	if _, err := wait.Until(ctx, quotas, "q", uses(0)); err != nil {
		t.Fatal(err)
	}

	// The writers end between two requests: the server may yet carry out a deletion
	// that its client has given up, and what is counted then changes again.
	var stopped atomic.Bool
	defer stopped.Store(true)
	var group sync.WaitGroup
	var created atomic.Int64
	for writer := range writers {
		group.Go(func() {
			for i := 0; !stopped.Load() && ctx.Err() == nil; i++ {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d-%d", writer, i)}}
				_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
				if apierrors.IsForbidden(err) {
					continue // above the quota
				}
				if err == nil {
					created.Add(1)
				}
				// A server that is gone may have created it before: if all stayed that writers do not know of, they
				// would fill the quota, and nobody would get on.
				for ctx.Err() == nil {
					if err := secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{}); err == nil || apierrors.IsNotFound(err) {
						break
					}
				}
			}
		})
	}
	check := func() int {
		list, err := secrets.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > allowed {
			t.Errorf("there are %d, and the quota allows %d", len(list.Items), allowed)
		}
		return len(list.Items)
	}
	for range rounds {
		for before := created.Load(); created.Load() < before+2*allowed; {
			if ctx.Err() != nil {
				t.Fatalf("writers have created %d, and get no further: %v", created.Load(), ctx.Err())
			}
			check()
		}
		c.processes[serve].kill()
		c.start(ctx, serve)
		check()
	}
	stopped.Store(true)
	group.Wait()
	left := check()
	if _, err := wait.Until(ctx, quotas, "q", uses(left)); err != nil {
		t.Errorf("%d were left, %d are now, and the quota does not say so: %v", left, check(), err)
	}
	c.intact()
}
