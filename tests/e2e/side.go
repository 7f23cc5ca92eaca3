package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// side is a server with controllers, a scheduler and simulated nodes.
type side struct {
	name  string
	what  string
	start func(context.Context, *cluster.Cluster) error
}

// allSides are in the order of the page's columns.
var allSides = []side{
	{"theirs", "kube-controller-manager and kube-scheduler on Levelwire's server", func(ctx context.Context, c *cluster.Cluster) error {
		return withComponents(c.StartLevelwire(ctx), c)
	}},
	{"ours", "levelwire up", func(ctx context.Context, c *cluster.Cluster) error { return c.StartWhole(ctx) }},
	{"judge", "kube-controller-manager and kube-scheduler on kube-apiserver", func(ctx context.Context, c *cluster.Cluster) error {
		return withComponents(c.StartKubeAPIServer(ctx), c)
	}},
}

// withComponents starts the components if the server has started.
func withComponents(failed error, c *cluster.Cluster) error {
	if failed != nil {
		return failed
	}
	return errors.Join(c.StartComponents(), c.StartSimulatedNodes())
}

// chooseSides returns the sides of some names, in their order.
func chooseSides(list string) (chosen []side, err error) {
	var known []string
	for _, s := range allSides {
		known = append(known, s.name)
	}
	for _, name := range names(list) {
		i := slices.IndexFunc(allSides, func(s side) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no side %s: choose of %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, allSides[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("name a side: " + strings.Join(known, ", "))
	}
	return chosen, nil
}
