package main

import (
	"context"
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

// deliveryTimeout is how long after the last answer the events of all updates may take.
const deliveryTimeout = 30 * time.Second

// beginProbe updates ConfigMaps at a rate, and watches them. The function that it returns ends that, and returns
// how long the updates took, from when each was due until its event was read from the watcher's socket. It fails unless every update
// succeeded and was seen.
func beginProbe(ctx context.Context, t *tested.Server, rate float64) (end func() (load.Histogram, error), err error) {
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
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var written load.Written
	var failed error
	writing.Go(func() { written, failed = writer.RunUntil(ctx, rate, stop) })
	return func() (load.Histogram, error) {
		close(stop)
		writing.Wait()
		defer crowd.Close()
		defer writer.Close()
		if failed != nil {
			return load.Histogram{}, failed
		}
		arriving, cancel := context.WithTimeout(ctx, deliveryTimeout)
		defer cancel()
		crowd.Await(arriving, written.Sent)
		seen := crowd.Report(true)
		return seen.Latency, probeError(written, seen)
	}, nil
}

// probeError returns what is wrong with what was written and what was seen of it.
func probeError(written load.Written, seen load.Report) error {
	switch {
	case written.Sent < written.Due:
		return fmt.Errorf("%d of %d updates in %s failed: %q", written.Due-written.Sent, written.Due, probeNamespace, written.Errors)
	case seen.Ended > 0 || seen.Disordered > 0:
		return fmt.Errorf("the watch of %s has ended, or %d events were out of order: %q", probeNamespace, seen.Disordered, seen.Errors)
	case seen.Total < written.Sent || seen.Total == 0:
		return fmt.Errorf("the watch of %s has brought %d of %d updates", probeNamespace, seen.Total, written.Sent)
	}
	return nil
}
