package main

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// elect returns what work is run with these flags.
func elect(t *testing.T, c *client.Client, work func(context.Context) error, args ...string) func(context.Context) error {
	t.Helper()
	var f electionFlags
	cmd := &cobra.Command{}
	f.register(cmd, "it")
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	run, err := f.elected(c, slog.New(slog.DiscardHandler), work)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestLeadershipThatIsLostIsSoughtAgain steals the lease, once.
func TestLeadershipThatIsLostIsSoughtAgain(t *testing.T) {
	t.Parallel()
	c := levelwiretest.Start(t).Client(client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	terms := make(chan struct{})
	run := elect(t, c, func(ctx context.Context) error {
		terms <- struct{}{}
		<-ctx.Done()
		return nil
	}, "--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=1m", "--leader-elect-retry-period=50ms", "--leader-elect-identity=me")
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	<-terms
	leases := client.For[*coordinationv1.Lease](c).Namespace("kube-system")
	for stolen := false; !stolen; {
		lease, err := leases.Get(ctx, "it", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if *lease.Spec.HolderIdentity != "me" {
			t.Fatalf("the leader is %q", *lease.Spec.HolderIdentity)
		}
		thief, second := "thief", int32(1)
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &thief, &second
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		stolen = err == nil // or it has just been renewed
	}
	<-terms // the thief does nothing with it
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWithoutElectionThereIsNoLease(t *testing.T) {
	ran := false
	run := elect(t, nil, func(context.Context) error { ran = true; return nil }, "--leader-elect=false")
	if err := run(t.Context()); err != nil || !ran {
		t.Errorf("ran %v, %v", ran, err)
	}
}

func TestElectionFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"controllers", "scheduler"} {
		s := levelwiretest.Start(t)
		code := run(t.Context(), []string{command, "--kubeconfig", s.Kubeconfig(), "--leader-elect-lease-duration=1s"}, io.Discard, io.Discard)
		if code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", command, code, exitUsage)
		}
	}
}
