package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/client"
)

// observer measures the process and prints what it finds.
type observer struct {
	client   *client.Client
	pid      int
	database string
	started  time.Time
}

// columns are sums of metrics over all resources.
var columns = []struct{ title, metric string }{
	{"other", `levelwire_memory_bytes{use="other"}`},
	{"garbage", `levelwire_memory_bytes{use="garbage"}`},
	{"free", `levelwire_memory_bytes{use="free"}`},
	{"objects", "levelwire_cache_object_bytes"},
	{"history", "levelwire_cache_history_bytes"},
	{"forms", "levelwire_cache_form_bytes"},
	{"tombstones", "levelwire_cache_tombstone_bytes"},
}

// report prints a line at intervals until ctx ends.
func (o *observer) report(ctx context.Context, interval time.Duration) error {
	fmt.Printf("%8s %9s %9s %9s %9s", "seconds", "writes", "cpu s", "anon MB", "file MB")
	for _, c := range columns {
		fmt.Printf(" %10s", c.title)
	}
	fmt.Printf(" %10s\n", "db MB")
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := o.line(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (o *observer) line(ctx context.Context) error {
	sums, err := o.metrics(ctx)
	if err != nil {
		return err
	}
	written, err := revision(ctx, o.client)
	if err != nil {
		return err
	}
	cpu, err := measure.CPU(o.pid)
	if err != nil {
		return err
	}
	memory, err := measure.MemoryOf(o.pid)
	if err != nil {
		return err
	}
	database, err := os.Stat(o.database)
	if err != nil {
		return err
	}
	fmt.Printf("%8.0f %9d %9.1f %9.1f %9.1f", time.Since(o.started).Seconds(), written, cpu.Seconds(), megabytes(memory.Anonymous), megabytes(memory.File))
	for _, c := range columns {
		fmt.Printf(" %10.1f", sums[c.metric]/1e6)
	}
	fmt.Printf(" %10.1f\n", megabytes(database.Size()))
	return nil
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// revision is how many changes the cluster's store has seen.
func revision(ctx context.Context, c *client.Client) (int64, error) {
	nodes, err := client.For[*corev1.Node](c).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(nodes.ResourceVersion, 10, 64)
}

// metrics reads the server's metrics, and sums each over its labels.
func (o *observer) metrics(ctx context.Context) (map[string]float64, error) {
	body, err := o.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.IndexByte(line, '}'); i >= 0 {
			name, _, _ = strings.Cut(line, "{")
			value = strings.TrimSpace(line[i+1:])
		}
		n, err := strconv.ParseFloat(value, 64)
		if !found || strings.HasPrefix(line, "#") || err != nil {
			continue
		}
		sums[name] += n
		if i := strings.IndexByte(line, '}'); i >= 0 {
			sums[line[:i+1]] = n
		}
	}
	return sums, nil
}

// heapProfile writes what lives on the heap after a collection into a file.
func (o *observer) heapProfile(ctx context.Context, path string) error {
	body, err := o.get(ctx, "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	return os.WriteFile(path, body, 0o600)
}

func (o *observer) get(ctx context.Context, path string) ([]byte, error) {
	config := o.client.RESTConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer httpClient.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return body, err
}
