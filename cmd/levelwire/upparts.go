package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	controller "github.com/levelwire/levelwire/components/controllermanager"
)

// What `levelwire up` can leave out.
const (
	partControllers = "controllers"
	partScheduler   = "scheduler"
	partKubelets    = "kubelets"
	partProxy       = "proxy"
	partMetrics     = "metrics"
)

var upPartNames = []string{partControllers, partScheduler, partKubelets, partProxy, partMetrics}

// upParts says which components `levelwire up` runs.
type upParts struct {
	nodes       int
	controllers []string // as controller.Options has them
	without     []string
	running     *running
}

func (p *upParts) register(cmd *cobra.Command) {
	p.running = &running{}
	cmd.Flags().IntVar(&p.nodes, "nodes", 3, fmt.Sprintf("how many nodes to simulate, at most %d", maxNodes))
	cmd.Flags().StringSliceVar(&p.without, "without", nil, "components that are not run because somebody else brings them: "+strings.Join(upPartNames, ", "))
	registerControllers(cmd, &p.controllers)
}

// registerControllers makes the flag that kube-controller-manager has, too.
func registerControllers(cmd *cobra.Command, controllers *[]string) {
	cmd.Flags().StringSliceVar(controllers, "controllers", []string{"*"},
		"which controllers run: * is all, a name is that one, and -NAME all but that one; names are those of kube-controller-manager: "+strings.Join(controller.Names(), ", "))
}

// complete checks the flags.
func (p *upParts) complete(cmd *cobra.Command) error {
	if p.nodes < 0 || p.nodes > maxNodes {
		return fmt.Errorf("--nodes %d: it is 0 to %d; levelwire kubelet adds single nodes from other processes", p.nodes, maxNodes)
	}
	for _, name := range p.without {
		if !slices.Contains(upPartNames, name) {
			return fmt.Errorf("--without %q: it is one of %s", name, strings.Join(upPartNames, ", "))
		}
	}
	if err := controller.CheckNames(p.controllers); err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	for part, flag := range map[string]string{partKubelets: "nodes", partControllers: "controllers"} {
		if p.leavesOut(part) && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--without %s and --%s exclude each other", part, flag)
		}
	}
	if p.leavesOut(partKubelets) {
		p.nodes = 0
	}
	return nil
}

func (p *upParts) leavesOut(name string) bool { return slices.Contains(p.without, name) }

// String says what runs.
func (p upParts) String() string {
	text := fmt.Sprintf("%d nodes", p.nodes)
	if len(p.without) > 0 {
		text += ", without " + strings.Join(p.without, ", ")
	}
	return text
}
