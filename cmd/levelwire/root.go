package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
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
  levelwire envtest-assets DIR      what envtest starts, for tests of controllers`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newUp(), newServe(), newControllers(), newScheduler(), newKubelet(), newProxy(), newVerify(), newEnvtestAssets(), newVersion())
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
		return usageError{fmt.Errorf("unknown command %q (see '%s --help')", name, root.CommandPath())}
	}
	return nil
}

// noArguments refuses anything that is not a flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q (see '%s --help')", args[0], cmd.CommandPath())}
	}
	return nil
}

// logging are the flags every command has.
type logging struct {
	level  string
	format string
}

func (l *logging) register(cmd *cobra.Command, level string) {
	cmd.Flags().StringVar(&l.level, "log-level", level, "least important messages to log: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", "text", "how to log: text or json")
}

func (l *logging) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q is unknown: it is debug, info, warn or error", l.level)}
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch l.format {
	case "text":
		handler = slog.NewTextHandler(w, opts)
	case "json":
		handler = slog.NewJSONHandler(w, opts)
	default:
		return nil, usageError{fmt.Errorf("--log-format %q is unknown: it is text or json", l.format)}
	}
	logger := slog.New(handler)
	// The Kubernetes libraries log through klog.
	klog.SetSlogLogger(logger.With("from", "klog"))
	return logger, nil
}
