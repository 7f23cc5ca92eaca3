package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/server"
)

const (
	// maxNodes is how many nodes `up` simulates at most: what Kubernetes is tested with.
	maxNodes = 5000
	// nodesPerConnection is how many kubelets share a connection. Each has two watches, and
	// a server allows a connection a thousand streams; one connection for each node would
	// cost more than all else that is kept for it.
	nodesPerConnection = 100
	// startingNodes is how many nodes register at a time.
	startingNodes = 32
	// manyNodes is how many nodes have workers enough among them, two each.
	manyNodes = 250
)

// newNodes makes the kubelets of count nodes of a cluster, beginning with the first-th. They
// share a connection and starting, which bounds how many register at a time, and each acts as the user of its own node.
func newNodes(s *server.Server, first, count, of int, starting chan struct{}, log *slog.Logger) (component, error) {
	shared, err := newComponentClient(&rest.Config{Host: s.URL(), TLSClientConfig: s.UserTokenConfig("").TLSClientConfig}, clientOptions("kubelet"))
	if err != nil {
		return component{}, fmt.Errorf("kubelets: %w", err)
	}
	var kubelets []*kubelet.Kubelet
	for i := first; i < first+count; i++ {
		k, makeErr := newNode(s, i, shared, of, starting, log)
		kubelets = append(kubelets, k)
		err = errors.Join(err, makeErr)
	}
	run := func(ctx context.Context) error {
		group, groupCtx := errgroup.WithContext(ctx)
		for _, k := range kubelets {
			group.Go(func() error { return k.Run(groupCtx) })
		}
		return group.Wait()
	}
	return component{"kubelets", shared.CloseIdleConnections, run}, err
}

// newNode makes the kubelet of one node, whose name counts from 1.
func newNode(s *server.Server, i int, shared *client.Client, of int, starting chan struct{}, log *slog.Logger) (*kubelet.Kubelet, error) {
	name := fmt.Sprintf("node-%d", i+1)
	options := clientOptions("kubelet")
	options.ConnectionsOf = shared
	c, err := newComponentClient(s.UserTokenConfig("system:node:"+name, "system:nodes"), options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	opts := kubelet.Options{NodeName: name, PodCIDR: podNetwork(i), NodeIP: nodeAddress(i), Starting: starting, Logger: log}
	if of > manyNodes {
		opts.Workers = 2
	}
	return kubelet.New(c, opts)
}

// nodeAddress counts up from 10.0.0.1.
func nodeAddress(i int) netip.Addr {
	n := i + 1
	return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
}

// podNetwork is 10.244.1.0/24 for the first node. Those for which 10.244.0.0/16 has no room
// are in 10.128.0.0/11.
func podNetwork(i int) netip.Prefix {
	ip := [4]byte{10, 244, byte(i + 1), 0}
	if i >= manyNodes {
		ip = [4]byte{10, byte(128 + i>>8), byte(i), 0}
	}
	return netip.PrefixFrom(netip.AddrFrom4(ip), 24)
}
