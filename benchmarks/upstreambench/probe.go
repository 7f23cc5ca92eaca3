package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

const (
	probeNamespace = "probe"
	probeObjects   = 20
)

func probePath(i int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/probe-%d", probeNamespace, i)
}

func probeBody(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe-%d","namespace":%q,"annotations":{%q:%q}},"data":{"key":"value"}}`,
		i, probeNamespace, load.SentAnnotation, load.SentPlaceholder)
}

// createProbes makes the objects that are updated.
func createProbes(ctx context.Context, t *tested.Server) error {
	var requests []load.Request
	for i := range probeObjects {
		requests = append(requests, post("/api/v1/namespaces/"+probeNamespace+"/configmaps", probeBody(i)))
	}
	return t.Change(ctx, requests)
}

// beginProbe updates ConfigMaps at a rate, and watches them. The function that it returns ends that, and returns the p50
// and the p99 of how long an update took, from when it was due until its event was read from the watcher's socket.
func beginProbe(ctx context.Context, t *tested.Server, rate float64) (end func() ([2]time.Duration, error), err error) {
	if err := createProbes(ctx, t); err != nil {
		return nil, err
	}
	config, address, err := t.Access.Reach()
	if err != nil {
		return nil, err
	}
	version, err := t.Version(ctx)
	if err != nil {
		return nil, err
	}
	crowd, err := load.Gather(ctx, load.CrowdOptions{
		Address: address, TLS: config, Watchers: 1,
		Path: "/api/v1/namespaces/" + probeNamespace + "/configmaps?watch=1&timeoutSeconds=36000&resourceVersion=" + version,
	})
	if err != nil {
		return nil, err
	}
	var objects []load.Object
	for i := range probeObjects {
		objects = append(objects, load.Object{Path: probePath(i), Body: []byte(probeBody(i))})
	}
	writer, err := load.NewWriter(ctx, load.WriterOptions{Address: address, TLS: config, Objects: objects})
	if err != nil {
		crowd.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	var failed error
	writing.Go(func() {
		const forever = 24 * time.Hour
		if _, err := writer.Run(ctx, rate, forever); err != nil && !errors.Is(err, context.Canceled) {
			failed = err
		}
	})
	return func() (lag [2]time.Duration, err error) {
		stop()
		writing.Wait()
		writer.Close()
		seen := crowd.Report(true)
		crowd.Close()
		switch {
		case failed != nil:
			return lag, failed
		case seen.Ended > 0 || seen.Disordered > 0:
			return lag, fmt.Errorf("the watch of %s has ended, or %d events were out of order: %q", probeNamespace, seen.Disordered, seen.Errors)
		case seen.Latency.Count == 0:
			return lag, fmt.Errorf("no update was seen on the watch of %s", probeNamespace)
		}
		return [2]time.Duration{seen.Latency.Quantile(0.5), seen.Latency.Quantile(0.99)}, nil
	}, nil
}
