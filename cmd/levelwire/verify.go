package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/conformance"
)

// verifyFlags are the flags of levelwire verify.
type verifyFlags struct {
	kubeconfig string
	context    string
	run        string
	output     string
	slow       bool
	parallel   int
}

func newVerify() *cobra.Command {
	var flags verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check what an API server promises about lists and watches",
		Long: `Try each guarantee that Kubernetes gives about lists and watches on any API
server, over raw HTTP. Everything happens in namespaces whose names begin with
levelwire-verify- and that are removed in the end, also after Ctrl-C. It takes
about half a minute.

The exit code is 1 if a guarantee is not kept. What cannot be checked on this
server is skipped, with the reason.

How long a check waits follows from how long simple requests take the server.
If it is too slow for a check to find out, the verdict is "not decided", with
what took too long. The exit code is 3 if that is so and no guarantee was
found to be broken: try again when the server has less to do, or with
--parallel 1.`,
		Example: `  levelwire verify --kubeconfig levelwire-data/admin.kubeconfig
  levelwire verify --run '^watch/|^stream/'
  levelwire verify -o junit > report.xml`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.verify(cmd) },
	}
	cmd.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "", "kubeconfig of the API server (default: $KUBECONFIG, then levelwire-data/admin.kubeconfig)")
	cmd.Flags().StringVar(&flags.context, "context", "", "context of the kubeconfig (default: its current one)")
	cmd.Flags().StringVar(&flags.run, "run", "", "try only guarantees whose name matches this regular expression")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "what to print: table, json or junit")
	cmd.Flags().BoolVar(&flags.slow, "slow", false, "include checks that take minutes")
	cmd.Flags().IntVar(&flags.parallel, "parallel", 8, "checks at a time")
	return cmd
}

func (f *verifyFlags) verify(cmd *cobra.Command) error {
	opts := conformance.Options{Slow: f.slow, Parallel: f.parallel}
	if f.run != "" {
		pattern, err := regexp.Compile(f.run)
		if err != nil {
			return cli.Usage(fmt.Errorf("--run: %w", err))
		}
		opts.Run = pattern
	}
	if f.parallel < 1 {
		return cli.Usage(fmt.Errorf("--parallel %d: at least one check has to run at a time", f.parallel))
	}
	print, err := f.printer()
	if err != nil {
		return err
	}
	path, err := cli.FindKubeconfig(f.kubeconfig)
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: f.context},
	).ClientConfig()
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	report, err := conformance.Run(cmd.Context(), config, opts)
	if report == nil {
		return err
	}
	if printErr := print(report, cmd.OutOrStdout()); printErr != nil {
		return printErr
	}
	return errors.Join(verdictOf(cmd, report), err) // err is about what was left behind
}

// printer returns how --output prints a report.
func (f *verifyFlags) printer() (func(*conformance.Report, io.Writer) error, error) {
	switch f.output {
	case "table":
		return (*conformance.Report).WriteTable, nil
	case "json":
		return (*conformance.Report).WriteJSON, nil
	case "junit":
		return (*conformance.Report).WriteJUnit, nil
	}
	return nil, cli.Usage(fmt.Errorf("--output %q is unknown: it is table, json or junit", f.output))
}

// notDecidedError says that a server was too slow for so many of all guarantees.
type notDecidedError struct{ n, all int }

func (e notDecidedError) Error() string {
	return fmt.Sprintf("%d of %d guarantees are not decided, because the server was too slow: try again when it has less to do, or with --parallel 1", e.n, e.all)
}

// verdictOf turns failures, what is not decided, and a run that was interrupted
// into an error.
func verdictOf(cmd *cobra.Command, report *conformance.Report) error {
	if failed := report.Count(conformance.Fail); failed > 0 {
		return fmt.Errorf("%d of %d guarantees are not kept", failed, len(report.Results))
	}
	if n := report.Count(conformance.NotDecided); n > 0 {
		return notDecidedError{n, len(report.Results)}
	}
	return cmd.Context().Err()
}
