package controllerruntime

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/levelwire/levelwire/tests/peers/program"
)

var throughRelay = flag.Bool("through-relay", false, "put a relay between the server and the clients")

// relay has the clients of an environment go through a relay, if -through-relay says so. The
// definitions and webhooks of the environment are installed already, on the server itself.
func relay(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	if !*throughRelay {
		return
	}
	kubeconfig := filepath.Join(t.TempDir(), "envtest.kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	certificates := environment.ControlPlane.GetAPIServer().CertDir
	_, environment.Config.Host = program.Relay(t, program.Build(t), program.Upstream{
		Kubeconfig: kubeconfig, ClientCA: filepath.Join(certificates, "client-cert-auth-ca.crt"),
		Certificate: filepath.Join(certificates, "apiserver.crt"), Key: filepath.Join(certificates, "apiserver.key"),
	})
}
