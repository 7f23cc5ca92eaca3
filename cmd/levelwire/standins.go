package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/spf13/cobra"
)

// A stand-in is this program under another name: what envtest, and other
// programs that start a control plane for a test from a folder of binaries, find there. See
// docs/users/testing.md for what they start them with.
var standIns = map[string]func() *cobra.Command{
	"etcd":           newEtcdStandIn,
	"kube-apiserver": newAPIServerStandIn,
	"kubectl":        newKubectlStandIn,
}

// commandOf returns the command that the program's name stands for.
func commandOf(program string) *cobra.Command {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if standIn, ok := standIns[name]; ok {
		cmd := standIn()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		return cmd
	}
	return newRoot()
}

// lenient makes a command take what the real one takes: flags that it does not
// know, and arguments, mean nothing to it.
func lenient(cmd *cobra.Command) *cobra.Command {
	cmd.FParseErrWhitelist.UnknownFlags = true
	cmd.Args = cobra.ArbitraryArgs
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

func newEnvtestAssets() *cobra.Command {
	return &cobra.Command{
		Use:   "envtest-assets DIR",
		Short: "Fill a folder with what envtest starts, so that it starts Levelwire",
		Long: `Fill DIR with etcd, kube-apiserver and kubectl that are this program, so that
the tests of any kubebuilder project run on Levelwire, with nothing to download:

  levelwire envtest-assets /tmp/assets
  KUBEBUILDER_ASSETS=/tmp/assets go test ./...

The API server keeps its objects in memory, each test run its own; etcd only
says that it is well; kubectl runs the next one in PATH.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("say which folder to fill (see '%s --help')", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if err := fillAssets(program, dir); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "export KUBEBUILDER_ASSETS="+cli.ShellQuote(dir))
			return nil
		},
	}
}

// fillAssets puts the program into a folder under each of the names: as a link
// if the folder is on the same file system, and otherwise as a copy.
func fillAssets(program, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range standIns {
		path := filepath.Join(dir, name)
		// A test may be running what is there: it is replaced, not written to.
		fresh := path + ".new"
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Link(program, fresh); err != nil {
			if err := copyProgram(program, fresh); err != nil {
				return err
			}
		}
		if err := os.Rename(fresh, path); err != nil {
			return err
		}
		// Renaming a link to the file that it already is leaves both.
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
