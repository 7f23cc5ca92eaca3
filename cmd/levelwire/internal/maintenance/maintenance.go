package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// maintenanceFlags choose the storage that a command works on: that of a running
// server, or the data directory of one that does not run.
type maintenanceFlags struct {
	dataDir    string
	kubeconfig string
	log        cli.Logging
}

// maintenanceHelp is the end of the help texts of commands with these flags.
const maintenanceHelp = `
Without --kubeconfig the command works on the data directory. If a server runs
on that, the command asks the server, with the directory's admin.kubeconfig.
With --kubeconfig it asks that server, as a user of the group system:masters.`

func (f *maintenanceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "levelwire-data", "data directory of a server with embedded storage")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of a running server, whatever its storage")
	f.log.Register(cmd, "warn")
}

// folder is etcd's, in the data directory.
func (f *maintenanceFlags) folder() string { return filepath.Join(f.dataDir, "etcd") }

// checkFolder fails if no server has stored anything in the data directory.
func (f *maintenanceFlags) checkFolder() error {
	if _, err := os.Stat(filepath.Join(f.folder(), "member")); err != nil {
		return fmt.Errorf("--data-dir %s has no embedded storage: %w", f.dataDir, err)
	}
	return nil
}

// open returns the storage, and how it is closed.
func (f *maintenanceFlags) open(cmd *cobra.Command) (maintained, error) {
	if f.kubeconfig != "" {
		return f.connect(f.kubeconfig)
	}
	if err := f.checkFolder(); err != nil {
		return nil, err
	}
	logger, err := f.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	// Nothing is written, so the server's own quota does not matter.
	store, err := etcd.Embed(cmd.Context(), etcd.EmbedConfig{Dir: f.folder(), Logger: logger, DiskReserveBytes: -1})
	if errors.Is(err, etcd.ErrInUse) {
		return f.connectLocal()
	}
	if err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	return offline{store}, nil
}

// connectLocal connects to the server that runs on the data directory.
func (f *maintenanceFlags) connectLocal() (maintained, error) {
	return f.connect(filepath.Join(f.dataDir, "admin.kubeconfig"))
}

func (f *maintenanceFlags) connect(kubeconfig string) (maintained, error) {
	c, err := client.FromKubeconfig(kubeconfig, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return online{c}, nil
}

// maintained is storage that a command works on.
type maintained interface {
	defragment(ctx context.Context) ([]storage.Defragmentation, error)
	snapshot(ctx context.Context) (io.ReadCloser, error)
	check(ctx context.Context) (checkReport, error)
	io.Closer
}

// checkReport is what a server answers to a check.
type checkReport struct {
	Members     []storage.MemberReport `json:"members"`
	Differences int                    `json:"differences"`
}

// offline is the storage of a server that does not run.
type offline struct{ *etcd.Store }

func (o offline) defragment(ctx context.Context) ([]storage.Defragmentation, error) {
	return o.Defragment(ctx)
}
func (o offline) snapshot(ctx context.Context) (io.ReadCloser, error) { return o.Snapshot(ctx) }
func (o offline) check(ctx context.Context) (checkReport, error) {
	members, err := o.Check(ctx)
	return checkReport{Members: members}, err
}

// online is the storage of a running server.
type online struct{ client *client.Client }

// maintenancePath is where a server is asked.
const maintenancePath = "/levelwire/v1/storage/"

func (o online) request(ctx context.Context, method, operation string) (io.ReadCloser, error) {
	answer, err := o.client.Raw(ctx, client.RawRequest{Method: method, Path: maintenancePath + operation})
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		const statusBytes = 1 << 16
		body, _ := io.ReadAll(io.LimitReader(answer.Body, statusBytes)) // what there is
		return nil, errors.Join(client.ResponseError(answer, body), answer.Body.Close())
	}
	return answer.Body, nil
}

func (o online) read(ctx context.Context, method, operation string, into any) error {
	body, err := o.request(ctx, method, operation)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(body).Decode(into), body.Close())
}

func (o online) defragment(ctx context.Context) (done []storage.Defragmentation, err error) {
	err = o.read(ctx, http.MethodPost, "defrag", &done)
	return done, err
}

func (o online) snapshot(ctx context.Context) (io.ReadCloser, error) {
	return o.request(ctx, http.MethodGet, "snapshot")
}

func (o online) check(ctx context.Context) (report checkReport, err error) {
	err = o.read(ctx, http.MethodGet, "check", &report)
	return report, err
}

func (o online) Close() error {
	o.client.CloseIdleConnections()
	return nil
}

// NewDefrag makes the command defrag.
func NewDefrag() *cobra.Command {
	var flags maintenanceFlags
	cmd := &cobra.Command{
		Use:   "defrag",
		Short: "Make the storage's files as small as what is in them",
		Long: `Defragment the database of embedded storage, or of all members of an etcd
cluster, one after the other, and clear the alarm of a database that has room
within its quota again. A running server answers no reads of the storage and no
writes meanwhile: about a second for each 100 MB.
` + maintenanceHelp,
		Example: `  levelwire defrag --data-dir levelwire-data
  levelwire defrag --kubeconfig admin.kubeconfig`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd, func(s maintained) error {
				fmt.Fprintln(cmd.ErrOrStderr(), "defragmenting")
				done, err := s.defragment(cmd.Context())
				for _, d := range done {
					fmt.Fprintf(cmd.OutOrStdout(), "%sdefragmented: %s, before %s\n", memberPrefix(d.Endpoint), cli.Mebibytes(d.After), cli.Mebibytes(d.Before))
				}
				return err
			})
		},
	}
	flags.register(cmd)
	return cmd
}

// with calls work with the storage and closes it.
func (f *maintenanceFlags) with(cmd *cobra.Command, work func(maintained) error) error {
	s, err := f.open(cmd)
	if err != nil {
		return err
	}
	return errors.Join(work(s), s.Close())
}

func memberPrefix(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	return endpoint + ": "
}
