package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/pki"
)

// rotateKeyFlags are the flags of the command rotate-service-account-key.
type rotateKeyFlags struct {
	dataDir    string
	dropFormer bool
}

func newRotateKey() *cobra.Command {
	var flags rotateKeyFlags
	cmd := &cobra.Command{
		Use:   "rotate-service-account-key",
		Short: "Replace the key that signs the tokens of service accounts",
		Long: `Make another key that signs the tokens of service accounts, in place of the one
that a server has made in its data directory. A server that runs signs by it
within a second. Tokens of former keys stay valid until these are dropped: do
that when the last of them has expired (an hour, unless tokens were asked for
with another lifetime; those in secrets of the type
kubernetes.io/service-account-token do not expire, and have to be made again).

A server with --service-account-signing-key-file has another key, which this
command does not know: replace that file.`,
		Example: `  levelwire rotate-service-account-key
  levelwire rotate-service-account-key --drop-former # an hour later`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.dataDir, "data-dir", "levelwire-data", "data directory of the server")
	f.BoolVar(&flags.dropFormer, "drop-former", false, "make no key: have the tokens of all former keys refused")
	return cmd
}

func (f *rotateKeyFlags) run(cmd *cobra.Command) error {
	key := pki.SigningKeyIn(filepath.Join(f.dataDir, "pki"), "service-account")
	act, said := key.Rotate, "a new key signs tokens; former keys that verify: %d\n"
	if f.dropFormer {
		act, said = key.DropFormer, "former keys dropped: %d\n"
	}
	keys, err := act()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--data-dir %s: no server has made a key there (%w): name its data directory; a server with --service-account-signing-key-file makes none", f.dataDir, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), said, keys)
	return nil
}
