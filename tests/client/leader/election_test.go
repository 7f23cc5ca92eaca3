package leader_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestTwoCandidatesOnAServer hands leadership over once by release.
func TestTwoCandidatesOnAServer(t *testing.T) {
	c := levelwiretest.Start(t).Client(client.Options{ContentType: client.Protobuf})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	leads := make(chan string)
	ended := make(chan error, 2)
	stop := map[string]context.CancelFunc{}
	for _, identity := range []string{"a", "b"} {
		e, err := leader.New(c, leader.Options{Namespace: "kube-system", Name: "it", Identity: identity, RetryPeriod: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stopOne := context.WithCancel(ctx)
		stop[identity] = stopOne
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context) error {
				select {
				case leads <- identity:
				case <-ctx.Done():
				}
				<-ctx.Done()
				return nil
			})
		}()
	}
	first := <-leads
	stop[first]()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	second := <-leads
	if second == first {
		t.Fatalf("%s leads twice", first)
	}
	lease, err := client.For[*coordinationv1.Lease](c).Namespace("kube-system").Get(ctx, "it", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != second || *lease.Spec.LeaseTransitions != 1 || *lease.Spec.LeaseDurationSeconds != 15 {
		t.Errorf("%+v, %v", lease, err)
	}
	stop[second]()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
