package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/kubeconfig"
)

// writeKubeconfig writes a file with a cluster, a user and, if current, a context of them.
func writeKubeconfig(t *testing.T, path, host string, current bool) string {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\n"
	if host != "" {
		text += "clusters:\n- {name: here, cluster: {server: '" + host + "'}}\n"
	}
	if current {
		text += "contexts:\n- {name: here, context: {cluster: here}}\ncurrent-context: here\n"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKubeconfigIsLookedForAsKubectlDoes: the file that is named, or those of KUBECONFIG,
// merged.
func TestKubeconfigIsLookedForAsKubectlDoes(t *testing.T) {
	dir := t.TempDir()
	named := writeKubeconfig(t, filepath.Join(dir, "named"), "https://named:1", true)
	cluster := writeKubeconfig(t, filepath.Join(dir, "cluster"), "https://listed:1", false)
	context := writeKubeconfig(t, filepath.Join(dir, "context"), "", true)
	t.Setenv("KUBECONFIG", cluster+string(filepath.ListSeparator)+context+string(filepath.ListSeparator)+filepath.Join(dir, "missing"))
	for path, want := range map[string]string{named: "named:1", "": "listed:1"} {
		c, err := client.FromKubeconfig(path, client.Options{})
		if err != nil || !strings.Contains(c.Host(), want) {
			t.Errorf("%q: %v, want the server %s", path, err, want)
		}
	}
	if _, err := client.FromKubeconfig(filepath.Join(dir, "missing"), client.Options{}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestNoConfigurationSaysWhatToDo(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := client.FromKubeconfig("", client.Options{})
	if !errors.Is(err, kubeconfig.ErrNone) || !strings.Contains(err.Error(), "set KUBECONFIG") {
		t.Errorf("got %v", err)
	}
}
