package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/replay"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd/backup"
)

// replayFlags are the flags of levelwire replay.
type replayFlags struct {
	cli.Logging
	config  server.Config
	speed   string
	paused  bool
	at      int64
	control string
	info    bool
}

func newReplay() *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Serve a recording, or a snapshot of etcd, as a read-only API server",
		Long: `Serve FILE as an API server: to kubectl, to controllers under test, to the
page at /ui. FILE is a recording of 'levelwire record', or a snapshot or a
database of etcd, of levelwire or of Kubernetes, which is shown as it was at
its last version.

A recording begins with its first version, or with that of --at, and goes on
as fast as it was recorded, or at another --speed. All versions are those of
the recorded cluster. Writes are refused (405). In a terminal, lines control
the replay, and --control does so over HTTP:

  ` + indent(replay.Commands, "  ") + `

A recording that is damaged, or was cut off, is served up to there.`,
		Example: `  levelwire replay rollout.lwr --speed 10
  kubectl --kubeconfig levelwire-replay/admin.kubeconfig get pods -A -w
  levelwire replay rollout.lwr --paused --control 127.0.0.1:7070
  curl -X POST 'http://127.0.0.1:7070/step?n=5'
  levelwire replay rollout.lwr --info
  levelwire replay backup.db`,
		Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.replay(cmd, args[0]) },
	}
	flags.Logging.Register(cmd, "warn")
	f, c := cmd.Flags(), &flags.config
	f.StringVar(&c.DataDir, "data-dir", "levelwire-replay", "directory for certificates and admin.kubeconfig")
	f.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	f.IntVar(&c.SecurePort, "secure-port", 6443, "port for HTTPS; 0 takes any free one")
	f.StringSliceVar(&c.AuthorizationModes, "authorization-mode", []string{"Node", "RBAC"}, "what decides which requests users may make, by the recorded roles; admin.kubeconfig may read everything")
	f.StringVar(&c.EncryptionProviderConfig, "encryption-provider-config", "", "EncryptionConfiguration file that a snapshot was written with")
	f.StringVar(&flags.speed, "speed", "1", "how many times faster than recorded to go on, or max: without waiting")
	f.BoolVar(&flags.paused, "paused", false, "begin paused")
	f.BoolVar(&flags.paused, "step", false, "the same as --paused: 'step' then makes one change at a time")
	f.Int64Var(&flags.at, "at", 0, "version to begin at (default: the first one)")
	f.StringVar(&flags.control, "control", "", "address for control over HTTP, without authentication: 127.0.0.1:7070 (default: none)")
	f.BoolVar(&flags.info, "info", false, "say what is in the file, check all of it, and end")
	return cmd
}

// indent puts a prefix before all lines but the first.
func indent(text, prefix string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		out = append(out, text[i])
		if text[i] == '\n' {
			out = append(out, prefix...)
		}
	}
	return string(out)
}

func (f *replayFlags) replay(cmd *cobra.Command, path string) error {
	speed, err := replay.ParseSpeed(f.speed)
	if err != nil {
		return cli.Usage(fmt.Errorf("--speed: %w", err))
	}
	if f.config.Logger, err = f.Logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	if f.config.SecurePort == 0 {
		f.config.SecurePort = server.AnyPort
	}
	f.config.ReadOnly, f.config.UI, f.config.Version = true, true, cli.Version()
	is, err := recording.IsRecording(path)
	if err != nil {
		return err
	}
	if !is {
		return f.replaySnapshot(cmd, path)
	}
	reader, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // It is only read.
	if f.info {
		return printRecording(cmd.OutOrStdout(), reader)
	}
	store, player, unserved, err := replay.Open(reader, replay.Options{Layout: server.StorageLayout(), At: f.at})
	if err != nil {
		return cli.Usage(fmt.Errorf("--at: %w", err))
	}
	for _, name := range unserved {
		fmt.Fprintf(cmd.ErrOrStderr(), "not served, because levelwire does not know it: %s\n", cli.Printable(name))
	}
	if damage := reader.Damage(); damage != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v; what is before that is served\n", path, damage)
	}
	return f.serve(cmd, store, func(ctx context.Context, group *errgroup.Group) error {
		if !f.paused {
			_ = player.Play(speed) // ParseSpeed has checked it
		}
		group.Go(func() error {
			if err := player.Run(ctx); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v; what is before that is served\n", path, err)
			}
			return nil
		})
		fmt.Fprintln(cmd.OutOrStdout(), player.Status())
		return f.controls(ctx, cmd, player, group)
	})
}

// controls begins to take commands.
func (f *replayFlags) controls(ctx context.Context, cmd *cobra.Command, player *replay.Player, group *errgroup.Group) error {
	if f.control != "" {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", f.control)
		if err != nil {
			return fmt.Errorf("--control: %w", err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "control: http://%s/\n", listener.Addr())
		group.Go(func() error { return player.ServeControl(ctx, listener) })
	}
	if in := cmd.InOrStdin(); cli.IsTerminal(in) {
		// It reads until the process ends: a terminal cannot be asked to stop.
		go func() { _ = player.ReadCommands(in, cmd.OutOrStdout()) }()
	}
	return nil
}

// replaySnapshot serves a file of etcd.
func (f *replayFlags) replaySnapshot(cmd *cobra.Command, path string) error {
	if f.at != 0 {
		return cli.Usage(errors.New("--at: a snapshot has no version but its last one"))
	}
	store, err := backup.OpenReadOnly(path)
	if err != nil {
		return fmt.Errorf("it is no recording, and cannot be opened as a snapshot: %w", err)
	}
	revision, err := store.Current(cmd.Context())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if f.info {
		fmt.Fprintf(cmd.OutOrStdout(), "%s: a snapshot of etcd at version %d\n", path, revision)
		return store.Close()
	}
	return f.serve(cmd, store, func(context.Context, *errgroup.Group) error {
		fmt.Fprintf(cmd.OutOrStdout(), "version %d\n", revision)
		return nil
	})
}

// serve serves a store, and calls begin when the server is ready.
func (f *replayFlags) serve(cmd *cobra.Command, store storage.Store, begin func(context.Context, *errgroup.Group) error) error {
	f.config.OpenStore = func(context.Context) (storage.Store, error) { return store, nil }
	s, err := server.Listen(f.config)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	group, ctx := errgroup.WithContext(cmd.Context())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() error {
		defer cancel()
		return s.Run(ctx)
	})
	group.Go(func() error {
		select {
		case <-s.Ready():
		case <-ctx.Done():
			return nil
		}
		fmt.Fprintf(cmd.OutOrStdout(), "serving at %s, read-only: kubectl --kubeconfig %s get all -A\n", s.URL(), cli.ShellQuote(s.Kubeconfig()))
		fmt.Fprintf(cmd.OutOrStdout(), "page: %s\n", s.SignInLink())
		return begin(ctx, group)
	})
	return group.Wait()
}

// printRecording says what is in a recording.
func printRecording(out io.Writer, r *recording.Reader) error {
	info := r.Info()
	first, began := r.Start()
	last, ended := r.End()
	fmt.Fprintf(out, "recorded from %s (%s) at %s, for %s\n", cli.Printable(info.Server), cli.Printable(info.ServerVersion), info.Started.Format(time.RFC3339), ended.Sub(began).Round(time.Second))
	fmt.Fprintf(out, "versions %d to %d, %d entries of %d resources, %s\n", first, last, r.Entries(), len(r.Resources()), cli.Mebibytes(r.Size()))
	if len(info.Namespaces) > 0 {
		fmt.Fprintf(out, "only namespaces %q\n", info.Namespaces)
	}
	for _, left := range info.LeftOut {
		fmt.Fprintf(out, "left out: %s: %s\n", cli.Printable(left.Resource), cli.Printable(left.Reason))
	}
	if err := r.Check(); err != nil {
		return fmt.Errorf("damaged %w", err)
	}
	fmt.Fprintln(out, "no damage found")
	return nil
}
