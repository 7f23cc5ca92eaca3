package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// kubectlTimeout is how long kubectl may take; it waits for what controllers do.
const kubectlTimeout = 5 * time.Minute

// Kubectl runs kubectl in a folder, with a namespace if there is one, and returns what it prints.
func (c *Cluster) Kubectl(ctx context.Context, folder, namespace string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	if namespace != "" {
		args = append([]string{"--namespace", namespace}, args...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.binaries, "kubectl"), append([]string{"--kubeconfig", c.admin, "--cache-dir", filepath.Join(c.folder, "kubectl")}, args...)...)
	cmd.Dir = folder
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
