package election

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/leader"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

// The durations of an election that a test can wait for, and that a busy machine keeps.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3500 * time.Millisecond
	retryPeriod   = 100 * time.Millisecond
)

// A term is one candidate's: led is closed when it leads, end has it release
// the lease and returns when that has happened.
type term struct {
	led <-chan struct{}
	end func()
}

func background(t *testing.T, run func(ctx context.Context, led func())) term {
	ctx, cancel := context.WithCancel(t.Context())
	led, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, func() { close(led) })
	}()
	end := func() { cancel(); <-ended }
	t.Cleanup(end)
	return term{led, end}
}

// theirs is a candidate of client-go's.
func theirs(t *testing.T, config *rest.Config, identity string) term {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return background(t, func(ctx context.Context, led func()) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "election"},
				Client:     c.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { led(); <-ctx.Done() },
				OnStoppedLeading: func() {},
			},
		})
	})
}

// ours is a candidate of ours.
func ours(t *testing.T, c *client.Client, identity string) term {
	elector, err := leader.New(c, leader.Options{
		Namespace: "default", Name: "election", Identity: identity,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	})
	if err != nil {
		t.Fatal(err)
	}
	return background(t, func(ctx context.Context, led func()) {
		if err := elector.Run(ctx, func(ctx context.Context) error { led(); <-ctx.Done(); return nil }); err != nil {
			t.Errorf("%s: %v", identity, err)
		}
	})
}

// TestCandidatesExcludeEachOther hands the lease from client-go's candidate to
// ours and back, and lets each lead for several lease durations beside the
// other.
func TestCandidatesExcludeEachOther(t *testing.T) {
	server := levelwiretest.Start(t)
	config, c := server.Config(), server.Client(client.Options{})

	first := theirs(t, config, "theirs")
	leads(t, first)
	second := ours(t, c, "ours")
	holds(t, c, "theirs", second)
	first.end()
	leads(t, second)
	third := theirs(t, config, "theirs again")
	holds(t, c, "ours", third)
	second.end()
	leads(t, third)

	lease, err := client.For[*coordinationv1.Lease](c).Namespace("default").Get(t.Context(), "election", metav1.GetOptions{})
	if err != nil || *lease.Spec.LeaseTransitions != 2 {
		t.Errorf("%+v, %v; want two transitions", lease, err)
	}
}

func leads(t *testing.T, candidate term) {
	t.Helper()
	select {
	case <-candidate.led:
	case <-time.After(3 * time.Minute):
		t.Fatal("there is no leader")
	}
}

// holds watches the lease until its holder has renewed it for three durations,
// and expects that the other candidate has not led meanwhile.
func holds(t *testing.T, c *client.Client, holder string, other term) {
	t.Helper()
	w, err := client.For[*coordinationv1.Lease](c).Namespace("default").Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "election").String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var since time.Time
	for {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		spec := event.Object.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity != holder {
			t.Fatalf("the holder is %v, want %s", spec.HolderIdentity, holder)
		}
		if since.IsZero() {
			since = spec.RenewTime.Time
		}
		if spec.RenewTime.Sub(since) > 3*leaseDuration {
			break
		}
	}
	select {
	case <-other.led:
		t.Fatalf("another leads beside %s", holder)
	default:
	}
}
