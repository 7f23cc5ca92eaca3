package maintenance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/etcd/backup"
)

// NewSnapshot makes the command snapshot with those below it.
func NewSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Back up the storage, and restore it",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:  cli.NoArguments,
	}
	cmd.AddCommand(newSnapshotSave(), newSnapshotRestore())
	return cmd
}

func newSnapshotSave() *cobra.Command {
	var flags maintenanceFlags
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save everything in the storage to a file",
		Long: `Save the storage as it is at one moment to FILE, in the format of etcd's own
snapshots: with a checksum, and readable by etcdctl and etcdutl. A running server
goes on serving. FILE is replaced if it exists, and only by a complete snapshot.
` + maintenanceHelp,
		Example: `  levelwire snapshot save backup.db
  levelwire snapshot save backup.db --kubeconfig admin.kubeconfig`,
		Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, func(s maintained) error {
				data, err := s.snapshot(cmd.Context())
				if err != nil {
					return err
				}
				size, err := saveSnapshot(cmd.ErrOrStderr(), data, args[0])
				if err := errors.Join(err, data.Close()); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "saved %s: %s\n", args[0], cli.Mebibytes(size))
				return nil
			})
		},
	}
	flags.register(cmd)
	return cmd
}

// saveSnapshot writes a snapshot whose checksum is right to a file.
func saveSnapshot(progress io.Writer, data io.Reader, path string) (size int64, err error) {
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close(), os.Remove(part.Name()))
		}
	}()
	sum := &checksum{hash: sha256.New()}
	size, err = io.Copy(io.MultiWriter(part, sum, &progressReport{to: progress, last: time.Now()}), data)
	if err != nil {
		return size, fmt.Errorf("the snapshot ended early: %w", err)
	}
	if !sum.right() {
		return size, errors.New("the snapshot ended early, or was changed on its way: its checksum is wrong")
	}
	if err = part.Sync(); err != nil {
		return size, fmt.Errorf("%s: %w", path, err)
	}
	if err = os.Rename(part.Name(), path); err != nil {
		return size, err
	}
	return size, part.Close()
}

// checksum compares what is written to it with the checksum at its end.
type checksum struct {
	hash hash.Hash
	tail []byte // not hashed yet, because they may be the checksum
}

func (c *checksum) Write(p []byte) (int, error) {
	c.tail = append(c.tail, p...)
	if n := len(c.tail) - sha256.Size; n > 0 {
		c.hash.Write(c.tail[:n]) //nolint:revive // never fails
		c.tail = append(c.tail[:0], c.tail[n:]...)
	}
	return len(p), nil
}

func (c *checksum) right() bool { return bytes.Equal(c.hash.Sum(nil), c.tail) }

// progressInterval is how often long work says how far it is.
const progressInterval = 2 * time.Second

// progressReport says how much has been written to it, now and then.
type progressReport struct {
	to    io.Writer
	last  time.Time
	bytes int64
}

func (p *progressReport) Write(data []byte) (int, error) {
	p.bytes += int64(len(data))
	if now := time.Now(); now.Sub(p.last) >= progressInterval {
		p.last = now
		fmt.Fprintf(p.to, "%s so far\n", cli.Mebibytes(p.bytes))
	}
	return len(data), nil
}

func newSnapshotRestore() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "restore FILE --data-dir DIR",
		Short: "Make a data directory out of a snapshot",
		Long: `Make the embedded storage of the data directory DIR out of a snapshot of
'levelwire snapshot save', of etcdctl, or out of the database of a damaged data
directory (DIR/etcd/member/snap/db). DIR must have no storage yet. Certificates,
keys and admin.kubeconfig are not part of a snapshot: to keep those of the
former server, move DIR/etcd away and restore into DIR.

Clients may have seen versions that the snapshot does not have. So the versions
of a restored storage begin a thousand million above it, and older ones count as
compacted: clients get 410 and ask for what differs, or list.`,
		Example: `  levelwire snapshot restore backup.db --data-dir restored
  levelwire serve --data-dir restored`,
		Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dataDir == "" {
				return cli.Usage(fmt.Errorf("--data-dir is missing: name the directory to restore into (see '%s --help')", cmd.CommandPath()))
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "restoring")
			if err := backup.Restore(args[0], filepath.Join(dataDir, "etcd")); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored %s: start it with levelwire serve --data-dir %s\n", args[0], cli.ShellQuote(dataDir))
			return nil
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory to make, or one without storage")
	return cmd
}

// NewCheck makes the command check.
func NewCheck() *cobra.Command {
	var flags maintenanceFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Look for damage in the storage, or in a snapshot",
		Long: `Read everything in the storage and look for damage. Of a server that does not
run, the write-ahead log and the structure of the database are checked, and
nothing is changed. A running server reads all keys and compares its caches with
them; with an etcd cluster it compares the members, too. With FILE, a snapshot
or a database is checked. The exit code is 1 if something is wrong.
` + maintenanceHelp,
		Example: `  levelwire check --data-dir levelwire-data
  levelwire check backup.db`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.OneFile(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return reportChecked(cmd.OutOrStdout(), args[0], checkFile(args[0]))
			}
			return flags.check(cmd)
		},
	}
	flags.register(cmd)
	return cmd
}

func reportChecked(w io.Writer, path string, err error) error {
	if err == nil {
		fmt.Fprintf(w, "%s: no damage found\n", path)
	}
	return err
}

// checkFile checks a snapshot with its checksum, or a database.
func checkFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	sum := &checksum{hash: sha256.New()}
	size, err := io.Copy(sum, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if backup.HasChecksum(size) && !sum.right() {
		return &etcd.DamageError{Path: path, Err: errors.New("its checksum is wrong")}
	}
	return etcd.CheckDatabase(path)
}

func (f *maintenanceFlags) check(cmd *cobra.Command) error {
	if f.kubeconfig == "" {
		if err := f.checkFolder(); err != nil {
			return err
		}
		if err := etcd.CheckFiles(f.folder()); !errors.Is(err, etcd.ErrInUse) {
			return reportChecked(cmd.OutOrStdout(), f.folder(), err)
		}
	}
	return f.with(cmd, func(s maintained) error {
		report, err := s.check(cmd.Context())
		if err != nil {
			return err
		}
		return report.print(cmd.OutOrStdout())
	})
}

// print writes the report and returns what is wrong.
func (r *checkReport) print(w io.Writer) error {
	var problems []error
	for _, m := range r.Members {
		fmt.Fprintf(w, "%setcd %s: revision %d, history from %d, database %s, of which %s are in use, quota %s, hash %08x\n",
			memberPrefix(m.Endpoint), m.Version, m.Revision, max(m.Compacted, 1), cli.Mebibytes(m.Size), cli.Mebibytes(m.InUse), cli.Mebibytes(m.Quota), m.Hash)
		for _, p := range m.Problems {
			problems = append(problems, errors.New(memberPrefix(m.Endpoint)+p))
		}
	}
	if r.Differences > 0 {
		problems = append(problems, fmt.Errorf("the server's caches differed in %d objects, and are being corrected", r.Differences))
	}
	if len(problems) == 0 {
		fmt.Fprintln(w, "no damage found")
	}
	return errors.Join(problems...)
}
