package upstream

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// ofTheirs are the flows that our components do not bring to their end, and why.
var ofTheirs = map[string]string{
	"affinity":  "our scheduler does not count pods' affinities to each other",
	"spread":    "our scheduler does not count topology spread",
	"zones":     "our scheduler does not count topology spread",
	"many":      "our controllers do not say how many pods of a Deployment are terminating",
	"provision": "none of our controllers binds a claim",
	"volume":    "none of our controllers binds a claim",
}

// TestOurComponents: on kube-apiserver, our controllers, scheduler and simulated nodes bring flows to their end, and log no errors. The
// objects there are not compared: the owners of their fields are others.
func TestOurComponents(t *testing.T) {
	if *binaries == "" {
		t.Skip("make test-upstream builds kube-apiserver and runs this")
	}
	if *failing != "" {
		t.Skip("it has kube-apiserver, which runs without faults")
	}
	c := cluster.New("kube-apiserver", absolute(t, *binaries), clusterFolder(t, "our-components"))
	// Our server makes the accounts of namespaces and publishes its authority there, and so our controllers do not.
	c.ManagerFlags = []string{"--leader-elect=false", "--controllers=serviceaccount-controller,root-ca-certificate-publisher-controller"}
	t.Cleanup(c.Stop)
	if err := c.StartKubeAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.StartControllerManager(), c.StartOurComponents(), c.StartSimulatedNodes(), c.StartHollowKubelet(), c.StartHollowProxy()); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := &kubectl{cluster: c, folder: absolute(t, "testdata")}
	for _, f := range chosenFlows(t) {
		t.Run(f.name, func(t *testing.T) {
			if why := ofTheirs[f.name]; why != "" {
				t.Skip(why)
			}
			if _, err := f.run(t.Context(), k, nil); err != nil {
				t.Error(err)
			}
		})
	}
	if err := c.Failure(); err != nil {
		t.Error(err)
	}
	for _, p := range c.Components() {
		log, err := os.ReadFile(p.Log())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, " level=ERROR ") {
				t.Errorf("%s: %s", p.Name(), line)
			}
		}
	}
}
