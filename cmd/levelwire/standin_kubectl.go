package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func newKubectlStandIn() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "kubectl",
		Short:              "Run the next kubectl in PATH",
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			path, err := otherKubectl(self, filepath.SplitList(os.Getenv("PATH")))
			if err != nil {
				return err
			}
			return syscall.Exec(path, append([]string{path}, args...), os.Environ())
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// otherKubectl returns the first kubectl in the folders that is not self.
func otherKubectl(self string, dirs []string) (string, error) {
	own, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, "kubectl")
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !os.SameFile(info, own) {
			return path, nil
		}
	}
	return "", errors.New("levelwire is no kubectl, and there is none in PATH: install kubectl (https://kubernetes.io/docs/tasks/tools/) and put it in PATH")
}
