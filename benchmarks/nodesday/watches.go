package main

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// crowd is the watchers of one sort.
type crowd struct {
	name string
	*load.Crowd
	watchers int
}

// watch opens all watches from now on.
func (p *plan) watch(ctx context.Context, t *tested.Server, served map[string]bool) (crowds []crowd, err error) {
	config, address, err := t.Access.Reach()
	if err != nil {
		return nil, err
	}
	for _, w := range []struct {
		name, kind, path, selector string
		watchers                   int
	}{
		{"pods, of a node", creates, podPath, "&fieldSelector=spec.nodeName%3Dnode-{i}", p.day.nodes},
		{"nodes, its own", nodes, nodePath, "&fieldSelector=metadata.name%3Dnode-{i}", p.day.nodes},
		{"pods, all", creates, podPath, "", controllers},
		{"nodes, all", nodes, nodePath, "", controllers},
		{"leases, all", leases, leasePath, "", controllers},
		{"endpoint slices, all", slicesOf, slicePath, "", controllers + p.day.proxyWatches()},
	} {
		if !served[w.kind] {
			continue
		}
		version, err := versionOf(ctx, t, w.path)
		if err != nil {
			return crowds, err
		}
		gathered, err := load.Gather(ctx, load.CrowdOptions{
			Address: address, TLS: config, Watchers: w.watchers, PerConn: p.perConnection,
			Path: w.path + "?watch=1&timeoutSeconds=36000&resourceVersion=" + version + w.selector,
		})
		if err != nil {
			return crowds, fmt.Errorf("%d watches of %s: %w", w.watchers, w.name, err)
		}
		crowds = append(crowds, crowd{w.name, gathered, w.watchers})
	}
	return crowds, nil
}

// versionOf is a list's resourceVersion now.
func versionOf(ctx context.Context, t *tested.Server, path string) (version string, err error) {
	err = t.With(ctx, func(c *load.Conn) error {
		answer := c.Do(ctx, load.Request{Path: path + "?limit=1", Header: []hpack.HeaderField{{Name: "accept", Value: "application/json"}}})
		if err := answer.Check(0); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		err := json.Unmarshal(answer.Body, &list)
		version = list.Metadata.ResourceVersion
		return err
	})
	return version, err
}
