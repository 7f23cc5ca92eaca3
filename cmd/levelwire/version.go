package main

import (
	"fmt"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "levelwire", cli.Version())
			return nil
		},
	}
}
