package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
)

// ClusterFlags say which API server a command asks.
type ClusterFlags struct{ kubeconfig, context string }

// Register adds the flags to a command.
func (f *ClusterFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the API server (default: $KUBECONFIG, then levelwire-data/admin.kubeconfig)")
	cmd.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default: its current one)")
}

// Client returns a client of the API server, and the namespace of its context.
func (f *ClusterFlags) Client() (*client.Client, string, error) {
	path, err := FindKubeconfig(f.kubeconfig)
	if err != nil {
		return nil, "", err
	}
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	namespace, _, err := loading.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	config.UserAgent = "levelwire/" + Version()
	c, err := client.New(config, client.Options{})
	return c, namespace, err
}

// FindKubeconfig returns the file to use: the flag's, the environment's, or
// the one a server started in this directory has left.
func FindKubeconfig(flag string) (string, error) {
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
