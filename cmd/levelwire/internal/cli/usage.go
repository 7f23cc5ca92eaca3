package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a mistake on the command line.
type UsageError struct{ err error }

// Usage makes of err a mistake on the command line.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Error() string { return e.err.Error() }

func (e UsageError) Unwrap() error { return e.err }

// NoArguments refuses anything that is not a flag.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("unexpected argument %q (see '%s --help')", args[0], cmd.CommandPath()))
	}
	return nil
}

// OneFile expects the name of a file.
func OneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usage(fmt.Errorf("%d arguments instead of one, the FILE (see '%s --help')", len(args), cmd.CommandPath()))
	}
	return nil
}

// OneLine joins the lines that joined errors have.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
