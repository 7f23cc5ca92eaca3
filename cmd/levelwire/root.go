package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/maintenance"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/observe"
	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "levelwire",
		Short: "Kubernetes' list-watch machinery as one small, fast server and one Go library",
		Long: `Levelwire is an API server that unmodified kubectl, client-go and Helm talk to,
together with the controllers, scheduler and simulated kubelets that make a
ReplicaSet become running pods.

  levelwire up                      everything in one process, to try things out
  levelwire serve                   the API server alone
  levelwire controllers, scheduler, kubelet, proxy
                                    the components, as processes of their own
  levelwire relay                   another server's API, lists and watches from caches
  levelwire watch KIND, history KIND NAME, top
                                    list-watch at work, on any API server
  levelwire record FILE, replay FILE
                                    what a cluster's watches send, recorded and served again
  levelwire user NAME               a kubeconfig for a further user
  levelwire rotate-service-account-key
                                    another key for the tokens of service accounts
  levelwire snapshot, defrag, check
                                    backups and maintenance of the storage
  levelwire envtest-assets DIR      what envtest starts, for tests of controllers`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Usage(fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath()))
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newUp(), newServe(), newRelay(), newControllers(), newScheduler(), newKubelet(), newProxy(), newUser(), newRotateKey(), newVerify(), newRecord(), newReplay(), observe.NewWatch(), observe.NewHistory(), observe.NewTop(), maintenance.NewSnapshot(), maintenance.NewDefrag(), maintenance.NewCheck(), newEnvtestAssets(), newVersion())
	return root
}

// checkCommand returns an error if the first argument that is no flag names no
// command of root, also after "help". Cobra would answer --help before it looks.
func checkCommand(root *cobra.Command, args []string) error {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 || !root.HasSubCommands() {
		return nil
	}
	name := args[i]
	switch {
	case name == "help":
		return checkCommand(root, args[i+1:])
	case name == "completion", strings.HasPrefix(name, cobra.ShellCompRequestCmd): // cobra adds them when it runs
		return nil
	}
	if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name }) {
		return cli.Usage(fmt.Errorf("unknown command %q (see '%s --help')", name, root.CommandPath()))
	}
	return nil
}
