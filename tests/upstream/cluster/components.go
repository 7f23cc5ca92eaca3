package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// simulatedNodes are the nodes of levelwire kubelet: their containers end when their
// annotations say so, which a kubelet with a fake runtime has no word for.
const simulatedNodes = 3

// hollowNode is the node of Kubernetes' kubelet with a fake runtime.
const hollowNode = "hollow-1"

// StartComponents starts Kubernetes' controller manager and scheduler.
func (c *Cluster) StartComponents() error {
	return errors.Join(c.StartControllerManager(), c.startServing("kube-scheduler", c.ComponentFlags...))
}

// StartControllerManager starts Kubernetes' controller manager.
func (c *Cluster) StartControllerManager() error {
	authority := filepath.Join(c.folder, "ca.pem")
	if err := os.WriteFile(authority, c.authority.CertificatePEM(), 0o600); err != nil {
		return err
	}
	return c.startServing("kube-controller-manager", slices.Concat(c.ComponentFlags,
		[]string{"--use-service-account-credentials", "--root-ca-file", authority, "--node-monitor-grace-period=40s"}, c.ManagerFlags)...)
}

// startServing starts a component of Kubernetes that is a user of its name, and answers AskComponents.
func (c *Cluster) startServing(name string, flags ...string) error {
	config, err := c.kubeconfig("system:" + name)
	if err != nil {
		return err
	}
	ports, err := c.ports(1)
	if err != nil {
		return err
	}
	if c.served == nil {
		c.served = map[string]string{}
	}
	c.served[name] = ports[0]
	return c.startComponent(name, name, append([]string{
		"--kubeconfig", config, "--authentication-kubeconfig", config, "--authorization-kubeconfig", config,
		"--bind-address=127.0.0.1", "--secure-port", ports[0], "--cert-dir", c.certificates(name), "--kube-api-qps=200", "--kube-api-burst=400",
	}, flags...)...)
}

// StartOurComponents starts our controllers, each with its own service account, our scheduler and our service proxy.
func (c *Cluster) StartOurComponents() error {
	start := func(name, user string, flags ...string) error {
		config, err := c.kubeconfig(user)
		if err != nil {
			return err
		}
		return c.startComponent("levelwire-"+name, "levelwire", append([]string{name, "--kubeconfig", config}, flags...)...)
	}
	return errors.Join(
		start("controllers", "system:kube-controller-manager", "--use-service-account-credentials"),
		start("scheduler", "system:kube-scheduler"),
		start("proxy", "system:kube-proxy"))
}

func (c *Cluster) certificates(component string) string { return filepath.Join(c.folder, component) }

// AskComponents asks the controller manager and the scheduler, which must be at work, for their metrics, as the administrator and as somebody without rights. They know
// both by what the server publishes in the ConfigMap extension-apiserver-authentication, and ask the server what a user may do
// (SubjectAccessReview).
func (c *Cluster) AskComponents(ctx context.Context) error {
	nobody, err := c.kubeconfig("nobody")
	if err != nil {
		return err
	}
	var errs []error
	for name, port := range c.served {
		ask := []string{"--server=https://127.0.0.1:" + port, "--certificate-authority", filepath.Join(c.certificates(name), name+".crt"), "get", "--raw", "/metrics"}
		if _, err := c.Kubectl(ctx, c.folder, "", ask...); err != nil {
			errs = append(errs, fmt.Errorf("%s does not answer the administrator: %w", name, err))
		}
		if _, err := c.Kubectl(ctx, c.folder, "", append(ask, "--kubeconfig", nobody)...); err == nil || !strings.Contains(err.Error(), "orbidden") {
			errs = append(errs, fmt.Errorf("%s, asked by somebody without rights: %w", name, cmp.Or(err, errors.New("it answers"))))
		}
	}
	return errors.Join(errs...)
}

// StartSimulatedNodes starts nodes of levelwire kubelet.
func (c *Cluster) StartSimulatedNodes() error {
	var errs []error
	for _, node := range c.addNodes() {
		config, err := c.nodeKubeconfig(node)
		if err == nil {
			err = c.startComponent(node, "levelwire", "kubelet", "--node-name="+node, "--kubeconfig", config)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// addNodes adds the simulated nodes to those that AwaitNodes waits for, and returns their names.
func (c *Cluster) addNodes() (names []string) {
	for i := range simulatedNodes {
		names = append(names, fmt.Sprintf("node-%d", i+1))
	}
	c.nodes = append(c.nodes, names...)
	return names
}

// StartHollowKubelet starts one of Kubernetes' kubelets with a fake runtime. Its node has a taint,
// so that only pods that want to be there are. It is none of Components: its fake containers end with it,
// while those of a real kubelet outlive it.
func (c *Cluster) StartHollowKubelet() error {
	ports, err := c.ports(2)
	if err != nil {
		return err
	}
	config, err := c.nodeKubeconfig(hollowNode)
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, hollowNode)
	_, err = c.start(hollowNode, c.RestartComponents, "kubemark", "--morph=kubelet", "--name="+hollowNode, "--register-with-taints=kubelet=hollow:NoSchedule", "--use-host-image-service=false",
		"--kubelet-port", ports[0], "--kubelet-read-only-port", ports[1], "--cert-dir", filepath.Join(c.folder, "hollow"), "--kubeconfig", config)
	return err
}

// HollowProxy is what StartHollowProxy calls its process.
const HollowProxy = "hollow-proxy"

// StartHollowProxy starts Kubernetes' service proxy with what it programs left out, so its log is all that says what it was
// told: which of its handlers were called. It is none of Components: another run would be told of everything again.
func (c *Cluster) StartHollowProxy() error {
	config, err := c.kubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}
	_, err = c.start(HollowProxy, c.RestartComponents, "kubemark", "--morph=proxy", "--name="+hollowNode, "--vmodule=config=4", "--kubeconfig", config)
	return err
}

// nodeKubeconfig makes the kubeconfig of a node's kubelet, and returns its path.
func (c *Cluster) nodeKubeconfig(node string) (string, error) {
	return c.kubeconfig("system:node:"+node, "system:nodes")
}

// AwaitNodes waits until all nodes are ready, so that no pod is unschedulable because a test came first.
func (c *Cluster) AwaitNodes(ctx context.Context) error {
	for _, node := range c.nodes { // one at a time: kubectl gives up if two of those that it waits for are not there yet
		for _, condition := range []string{"create", "condition=Ready"} {
			if _, err := c.Kubectl(ctx, c.folder, "", "wait", "--for="+condition, "--timeout=240s", "node/"+node); err != nil {
				return err
			}
		}
	}
	return nil
}
