package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
)

// electionFlags are the flags of the commands of which several processes may
// run but one at a time acts. They are called as Kubernetes' components call
// them.
type electionFlags struct {
	elect bool
	opts  leader.Options
}

// register makes the flags; name is the Lease's, which is that of Kubernetes'
// own component: one of theirs and one of ours exclude each other.
func (f *electionFlags) register(cmd *cobra.Command, name string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.elect, "leader-elect", true, "act only as the elected one of all processes that use the same lease")
	flags.StringVar(&f.opts.Name, "leader-elect-resource-name", name, "name of the lease")
	flags.StringVar(&f.opts.Namespace, "leader-elect-resource-namespace", metav1.NamespaceSystem, "namespace of the lease")
	flags.StringVar(&f.opts.Identity, "leader-elect-identity", "", "name of this process in the lease. One that is started again with the name of one that was killed leads at once, so no two may have it (default: the host's name and a random part)")
	flags.DurationVar(&f.opts.LeaseDuration, "leader-elect-lease-duration", leader.DefaultLeaseDuration, "how long another waits before it takes over from one that was killed")
	flags.DurationVar(&f.opts.RenewDeadline, "leader-elect-renew-deadline", leader.DefaultRenewDeadline, "how long a leader that cannot renew the lease goes on")
	flags.DurationVar(&f.opts.RetryPeriod, "leader-elect-retry-period", leader.DefaultRetryPeriod, "how often the lease is renewed, or looked at")
}

// elected returns a function that calls work while this process leads. If it
// loses that, it is a candidate again: an API server that was away costs a
// process its leadership, but not its life. Each term begins with nothing
// remembered of the one before.
func (f *electionFlags) elected(c *client.Client, log *slog.Logger, work func(context.Context) error) (func(context.Context) error, error) {
	if !f.elect {
		return work, nil
	}
	opts := f.opts
	opts.Logger = log
	elector, err := leader.New(c, opts)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return func(ctx context.Context) error {
		for {
			err := elector.Run(ctx, work)
			if !errors.Is(err, leader.ErrLost) || ctx.Err() != nil {
				return err
			}
		}
	}, nil
}
