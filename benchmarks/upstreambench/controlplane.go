package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// controlPlane is a server with Kubernetes' controller manager and scheduler.
type controlPlane struct {
	*cluster.Cluster
	server *tested.Server // what requests go to; its processes are the cluster's
}

// startControlPlane starts the programs of a side in a folder. Both servers have their defaults, with which their stores sync
// to the disk. The caller must Stop what is returned, also with an error.
func startControlPlane(ctx context.Context, binaries, dir, side string) (*controlPlane, error) {
	c := &controlPlane{Cluster: cluster.New(side, binaries, dir)}
	c.Sync, c.ServerFlags = true, []string{"--log-level=warn"}
	// With the defaults, 20 and 50 requests a second, the limits of the clients would be measured.
	c.ComponentFlags = []string{"--kube-api-qps=5000", "--kube-api-burst=10000"}
	// Nobody renews the leases of the nodes, which are to stay ready.
	c.ManagerFlags = []string{"--node-monitor-grace-period=24h", "--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20", "--concurrent-gc-syncs=50"}
	begin := map[string]func(context.Context) error{ours: c.StartDurable, theirs: c.StartKubeAPIServer}[side]
	if err := begin(ctx); err != nil {
		return c, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		return c, err
	}
	c.server = &tested.Server{Side: side, Access: tested.Access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}}
	return c, c.StartComponents()
}

// servers are the API server and, where that is a program of its own, its store.
func (c *controlPlane) servers() programs { return append(c.Servers(), c.Stores()...) }

// stores are the programs that keep the objects of the API server.
func (c *controlPlane) stores() programs { return c.Stores() }

const (
	// settleInterval is how long the programs are looked at at a time, and settledFor how often in a row they have to be idle.
	settleInterval, settledFor = 500 * time.Millisecond, 4
	// idleShare is how much of a processor they may use then: what all of them take for leases, health and periodic reviews.
	idleShare = 0.1
	// settleTimeout is how long that may take.
	settleTimeout = 5 * time.Minute
)

// settle waits until neither the server nor the components have anything more to do of what was prepared, such as 1,000 new nodes: otherwise
// a server that is ready sooner would be measured with that.
func (c *controlPlane) settle(ctx context.Context) error {
	all := append(c.servers(), c.Components()...)
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("the server and the components were not idle within %v", settleTimeout))
	defer cancel()
	before, err := all.cpu()
	if err != nil {
		return err
	}
	for quiet := 0; quiet < settledFor; {
		if err := tested.Pause(ctx, settleInterval); err != nil {
			return err
		}
		now, err := all.cpu()
		if err != nil {
			return errors.Join(err, c.Failure())
		}
		if quiet++; float64(now-before) > idleShare*float64(settleInterval) {
			quiet = 0
		}
		before = now
	}
	return nil
}

// programs are processes that are measured together.
type programs []*cluster.Process

// cpu is the processor time that they have used.
func (all programs) cpu() (sum time.Duration, err error) {
	for _, p := range all {
		d, err := measure.CPU(p.PID())
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// memory is what they have resident.
func (all programs) memory() (sum measure.Memory, err error) {
	for _, p := range all {
		m, err := measure.MemoryOf(p.PID())
		if err != nil {
			return sum, err
		}
		sum = sum.Add(m)
	}
	return sum, nil
}

// resetPeak makes the peak of their memory what they have now.
func (all programs) resetPeak() error {
	for _, p := range all {
		if err := measure.ResetPeak(p.PID()); err != nil {
			return err
		}
	}
	return nil
}
