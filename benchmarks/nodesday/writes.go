package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
)

// count is what became of the writes of a kind.
type count struct {
	mu sync.Mutex
	// Sent were answered with success, Refused with 429, 503 or 507; the rest failed.
	Sent, Refused, Failed int64
	Last                  string         // one of the failures
	Latency               load.Histogram // from when a write was due until it was answered
}

func (c *count) add(a load.Answered, due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := a.Check(0); {
	case err == nil:
		c.Sent++
		c.Latency.Add(time.Since(due))
	case a.Status == 429 || a.Status == 503 || a.Status == 507:
		c.Refused++
	default:
		c.Failed++
		c.Last = err.Error()
	}
}

// clients write over a few connections. Their rate does not depend on the server: what is
// late counts as late.
type clients struct {
	day   *day
	conns []*load.Conn
	next  atomic.Uint64
	// served are the kinds of writes that the server has resources for.
	served map[string]bool
	counts map[string]*count
	// generations of the pods, each of which one restart at a time changes.
	generations []int32
	restarted   int
}

// inFlight bounds the writes, and the restarts, of each kind that are under way.
const inFlight = 400

// restartStride is a prime, so that pods which are replaced one after the other are of
// different Services, whose EndpointSlices nothing else writes meanwhile.
const restartStride = 7919

func (c *clients) reset() {
	c.counts = map[string]*count{}
	for _, kind := range kinds {
		c.counts[kind] = &count{}
	}
}

// do sends a write and counts its answer.
func (c *clients) do(ctx context.Context, kind string, due time.Time, r load.Request) {
	if !c.served[kind] {
		return
	}
	conn := c.conns[c.next.Add(1)%uint64(len(c.conns))]
	a := conn.Do(ctx, r)
	if !errors.Is(a.Err, context.Canceled) && !errors.Is(a.Err, context.DeadlineExceeded) {
		c.counts[kind].add(a, due)
	}
}

// restart replaces a pod, as a Deployment, the scheduler, a kubelet and the endpoint slice
// controller do together.
func (c *clients) restart(ctx context.Context, due time.Time, i int) {
	generation := int(c.generations[i])
	c.generations[i]++
	slice := i / podsPerSlice
	c.do(ctx, creates, due, newPod(c.day, i, generation+1))
	c.do(ctx, statuses, time.Now(), podStatus(i, generation+1, "Pending", false))
	c.do(ctx, statuses, time.Now(), podStatus(i, generation+1, "Pending", false))
	c.do(ctx, statuses, time.Now(), podStatus(i, generation+1, "Running", true))
	c.do(ctx, slicesOf, time.Now(), sliceUpdate(slice, i%podsPerSlice))
	c.do(ctx, statuses, time.Now(), podStatus(i, generation, "Succeeded", false))
	c.do(ctx, slicesOf, time.Now(), sliceUpdate(slice, -1))
	c.do(ctx, deletes, time.Now(), podDelete(i, generation))
}

// write lives for a duration at a rate, times that of the day, and returns when all is
// answered, or ctx has ended.
func (c *clients) write(ctx context.Context, rate float64, duration time.Duration) {
	var all sync.WaitGroup
	defer all.Wait()
	due := c.day.perSecond()
	all.Go(func() {
		repeat(ctx, due[leases]*rate, duration, func(at time.Time, n int) { c.do(ctx, leases, at, renewal(n%c.day.nodes)) })
	})
	all.Go(func() {
		repeat(ctx, due[nodes]*rate, duration, func(at time.Time, n int) { c.do(ctx, nodes, at, nodeStatus(n%c.day.nodes)) })
	})
	all.Go(func() {
		first := c.restarted
		c.restarted += repeat(ctx, c.day.restartsPerSecond()*rate, duration, func(at time.Time, n int) { c.restart(ctx, at, (first+n)*restartStride%c.day.pods()) })
	})
}

// repeat calls do perSecond times a second on goroutines of their own, at most inFlight at a
// time, and waits for them. It returns how often.
func repeat(ctx context.Context, perSecond float64, duration time.Duration, do func(due time.Time, n int)) int {
	var running sync.WaitGroup
	defer running.Wait()
	slots, begun := make(chan struct{}, inFlight), time.Now()
	calls := int(perSecond * duration.Seconds())
	for n := range calls {
		due := begun.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return n
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return n
		}
		running.Go(func() {
			defer func() { <-slots }()
			do(due, n)
		})
	}
	return calls
}

// fill creates what there is when the day begins, and notes what the server does not serve.
func (c *clients) fill(ctx context.Context) error {
	conn := c.conns[0]
	for _, namespace := range []string{"day", "kube-node-lease"} {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, namespace)
		if err := conn.Do(ctx, post("/api/v1/namespaces", body)).Check(0, 409); err != nil {
			return err
		}
	}
	c.served = map[string]bool{leases: true, creates: true, statuses: true, deletes: true}
	for kind, path := range map[string]string{nodes: nodePath, slicesOf: slicePath} {
		c.served[kind] = conn.Do(ctx, load.Request{Path: path + "?limit=1"}).Check(0) == nil
	}
	c.generations = make([]int32, c.day.pods())
	for _, objects := range []struct {
		kind string
		n    int
		make func(i int) load.Request
	}{
		{leases, c.day.nodes, newLease}, {nodes, c.day.nodes, newNode}, {slicesOf, c.day.slices(), newSlice},
		{creates, c.day.pods(), func(i int) load.Request { return newPod(c.day, i, 0) }},
	} {
		if !c.served[objects.kind] {
			continue
		}
		err := load.Post(ctx, conn, 64, func(yield func(load.Request) bool) {
			for i := range objects.n {
				if !yield(objects.make(i)) {
					return
				}
			}
		})
		if err != nil {
			return fmt.Errorf("%d of %s: %w", objects.n, objects.kind, err)
		}
	}
	return nil
}
