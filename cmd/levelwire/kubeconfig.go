package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// findKubeconfig returns the file to use: the flag's, the environment's, or
// the one a server started in this directory has left.
func findKubeconfig(flag string) (string, error) {
	beside := filepath.Join("levelwire-data", "admin.kubeconfig")
	for _, candidate := range []struct{ from, path string }{
		{"--kubeconfig", flag}, {"KUBECONFIG", os.Getenv("KUBECONFIG")},
	} {
		if candidate.path == "" {
			continue
		}
		// KUBECONFIG may be a list; clientcmd merges it. We take the first.
		path := filepath.SplitList(candidate.path)[0]
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", candidate.from, err)
		}
		return path, nil
	}
	if _, err := os.Stat(beside); err != nil {
		return "", fmt.Errorf("no kubeconfig: give --kubeconfig, set KUBECONFIG, or start `levelwire serve` in this directory")
	}
	return beside, nil
}
