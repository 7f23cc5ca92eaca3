package upstream

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// variant is how Levelwire is run, and what fails while the flows run. The objects at the end must be those that
// there are on kube-apiserver, which always runs without faults.
type variant struct {
	start func(*cluster.Cluster, context.Context) error // starts the server, or several
	// logsCompared: what components log as errors is compared line by line with what they log on kube-apiserver. Otherwise it is
	// counted: which errors there are while a server is away is chance.
	logsCompared bool
	every        time.Duration // how long after a fault the next one follows
	fault        func(ctx context.Context, c *cluster.Cluster, turn int) error
	// kubectlFails says that a fault breaks kubectl's connections, too: then a step is repeated.
	kubectlFails bool
	// flags are those of the controller manager and the scheduler.
	flags []string
}

// variants are what the flag -upstream.faults names.
var variants = map[string]variant{
	"": {start: (*cluster.Cluster).StartLevelwire, logsCompared: true},
	// Levelwire is a relay in front of kube-apiserver.
	"relay": {
		start: func(c *cluster.Cluster, ctx context.Context) error {
			if err := c.StartKubeAPIServer(ctx); err != nil {
				return err
			}
			rights, err := filepath.Abs("../../docs/operators/relay/rbac.yaml")
			if err != nil {
				return err
			}
			return c.StartRelay(ctx, rights)
		},
		logsCompared: true,
	},
	"kill": {
		start: (*cluster.Cluster).StartDurable,
		every: 20 * time.Second,
		fault: func(ctx context.Context, c *cluster.Cluster, _ int) error {
			c.Servers()[0].Kill()
			return c.AwaitReady(ctx)
		},
		kubectlFails: true,
	},
	"three": {start: func(c *cluster.Cluster, ctx context.Context) error { return c.StartReplicas(ctx, 3) }, logsCompared: true},
	"restart": {
		start: (*cluster.Cluster).StartLevelwire,
		every: 5 * time.Second,
		fault: func(_ context.Context, c *cluster.Cluster, turn int) error {
			components := c.Components()
			components[turn%len(components)].Kill()
			return nil
		},
		// A component that is killed keeps its lease, and its next run waits for the lease's end.
		flags: []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"},
	},
}

// variantNames lists the names of the variants, for messages.
func variantNames() string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(variants)), func(name string) bool { return name == "" }), ", ")
}

// begin has the faults happen from now on, the first one at once, until the function that it returns is called. That
// one returns an error if a fault was not overcome.
func (v variant) begin(ctx context.Context, c *cluster.Cluster) (end func() error) {
	if v.fault == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var err error
	running.Go(func() {
		for turn := 0; ; turn++ {
			if failed := v.fault(ctx, c, turn); failed != nil && ctx.Err() == nil {
				err = failed
				return
			}
			select {
			case <-time.After(v.every):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() error {
		cancel()
		running.Wait()
		return err
	}
}
