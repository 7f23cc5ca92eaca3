package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/recording/recorder"
)

// recordFlags are the flags of levelwire record.
type recordFlags struct {
	cli.Logging
	cli.ClusterFlags
	opts     recorder.Options
	duration time.Duration
}

func newRecord() *cobra.Command {
	var flags recordFlags
	cmd := &cobra.Command{
		Use:   "record FILE",
		Short: "Record what a cluster's lists and watches send",
		Long: `Write everything that an API server shows into FILE, which must not exist:
the state of all resources at one version, and then each change as the
watches send it, with its version and time. 'levelwire replay FILE' serves
it again. It works with any Kubernetes and only reads: what it may not list
and watch is left out, and said.

It records until Ctrl-C or --duration. A recorder that is killed loses five
seconds at most. Memory is needed for the names of objects, not for the
recording.

Secrets are left out unless --secrets asks for them. Other objects may have
secrets in them, too: look at ConfigMaps, and at the environment of Pods,
before you give a recording to others, or leave them out by --exclude.`,
		Example: `  levelwire record cluster.lwr
  levelwire record rollout.lwr --namespace shop --duration 10m
  levelwire record pods.lwr --resources pods,nodes,deployments --kubeconfig ~/.kube/config`,
		Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.record(cmd, args[0]) },
	}
	flags.ClusterFlags.Register(cmd)
	flags.Logging.Register(cmd, "warn")
	cmd.Flags().StringSliceVar(&flags.opts.Resources, "resources", nil, "resources to record, by names that kubectl takes (default: all that can be listed and watched)")
	cmd.Flags().StringSliceVar(&flags.opts.Exclude, "exclude", nil, "resources to leave out, such as configmaps,events")
	cmd.Flags().BoolVar(&flags.opts.Secrets, "secrets", false, "record secrets, too: the file then has passwords and keys in clear text")
	cmd.Flags().StringSliceVarP(&flags.opts.Namespaces, "namespace", "n", nil, "record resources with namespaces in these only (default: in all)")
	cmd.Flags().DurationVar(&flags.duration, "duration", 0, "how long to record (default: until Ctrl-C)")
	return cmd
}

func (f *recordFlags) record(cmd *cobra.Command, path string) error {
	if f.duration < 0 {
		return cli.Usage(fmt.Errorf("--duration %s is negative", f.duration))
	}
	for name, values := range map[string][]string{"resources": f.opts.Resources, "namespace": f.opts.Namespaces} {
		// An empty variable of a script must not record everything.
		if cmd.Flags().Changed(name) && (len(values) == 0 || slices.Contains(values, "")) {
			return cli.Usage(fmt.Errorf("--%s has an empty name: leave the flag out to record all", name))
		}
	}
	logger, err := f.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	c, _, err := f.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	progress := &recordProgress{out: cmd.ErrOrStderr(), path: path, terminal: cli.IsTerminal(cmd.ErrOrStderr())}
	f.opts.Logger = logger
	f.opts.Progress = func(s recorder.Stats) {
		if f.duration > 0 && s.Started && !progress.started {
			time.AfterFunc(f.duration, cancel) // ends with the process, at the latest
		}
		progress.show(s)
	}
	stats, err := recorder.Record(ctx, c, path, f.opts)
	progress.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "recorded %s: %d objects of %d resources, %d changes up to version %d, %s\n",
		path, stats.Objects, stats.Resources, stats.Entries, stats.Revision, cli.Mebibytes(stats.Bytes))
	if stats.Late > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%d changes came too late for their place, and are a little later in it\n", stats.Late)
	}
	if stats.Gaps > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%d times the server could not resume a watch: steps in between are missing\n", stats.Gaps)
	}
	for _, out := range stats.LeftOut {
		fmt.Fprintf(cmd.OutOrStdout(), "left out: %s: %s\n", out.Resource, out.Reason)
	}
	return nil
}

// recordReportInterval is how often progress is shown outside of a terminal. A test
// shortens it.
var recordReportInterval = time.Minute

// recordProgress shows how far a recording is: one line that is overwritten in a
// terminal, and a line now and then elsewhere.
type recordProgress struct {
	out      io.Writer
	path     string
	terminal bool
	started  bool
	shown    bool
	last     time.Time
}

func (p *recordProgress) show(s recorder.Stats) {
	switch {
	case !s.Started:
		return
	case !p.started:
		p.started, p.last = true, time.Now()
		fmt.Fprintf(p.out, "recording to %s: %d objects of %d resources at version %d; Ctrl-C ends it\n", p.path, s.Objects, s.Resources, s.Revision)
		return
	case !p.terminal && time.Since(p.last) < recordReportInterval:
		return
	}
	p.last = time.Now()
	line := fmt.Sprintf("version %d, %d changes, %s", s.Revision, s.Entries, cli.Mebibytes(s.Bytes))
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// end leaves the line that was overwritten.
func (p *recordProgress) end() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
}
