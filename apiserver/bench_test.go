package apiserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/watchcache"
)

// fill puts pods of about 2.9 kB into the cache behind a cluster's back: the
// store is not what is measured.
func fill(b *testing.B, c *cluster, count int) {
	b.Helper()
	base := c.caches[c.pods].Current().Revision()
	objects := make([]*watchcache.Object, 0, count)
	for i := range count {
		rev := base + 1
		pod := benchPod(i)
		stored, err := c.pods.Encode(pod)
		must(b, err)
		object, err := c.caches[c.pods].Decode(c.pods.Key(pod.Namespace, pod.Name), stored, rev)
		must(b, err)
		objects = append(objects, object)
	}
	_, err := c.caches[c.pods].Fill(objects, base+1)
	must(b, err)
}

func benchPod(i int) *corev1.Pod {
	pod := testPod(fmt.Sprintf("ns-%03d", i/2000), fmt.Sprintf("pod-%06d", i), map[string]string{"app": "bench"}, fmt.Sprintf("node-%d", i%1000))
	pod.Annotations = map[string]string{"fill": strings.Repeat("abcdefgh", 310)}
	return pod
}

// discardWriter is a client that reads at the speed of memory.
type discardWriter struct {
	header http.Header
	bytes  int64
}

func (w *discardWriter) Header() http.Header              { return w.header }
func (w *discardWriter) WriteHeader(int)                  {}
func (w *discardWriter) Write(p []byte) (int, error)      { w.bytes += int64(len(p)); return len(p), nil }
func (w *discardWriter) Flush()                           {}
func (w *discardWriter) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkList serves lists of 200,000 pods, without and with a network.
func BenchmarkList(b *testing.B) {
	c := newCluster(b)
	fill(b, c, 200_000)
	for _, accept := range []string{"application/json", protobufType, metaListType} {
		b.Run("handler/"+accept, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequest(http.MethodGet, "/api/v1/pods?resourceVersion=0", nil)
				must(b, err)
				r.Header.Set("Authorization", "Bearer "+testToken)
				r.Header.Set("Accept", accept)
				w := &discardWriter{header: http.Header{}}
				c.server.ServeHTTP(w, r)
				b.SetBytes(w.bytes)
			}
		})
	}
	for name, client := range map[string]*http.Client{"HTTP1": c.http1, "HTTP2": c.http2} {
		b.Run("TLS/"+name, func(b *testing.B) {
			for b.Loop() {
				resp := c.open(context.Background(), client, http.MethodGet, "/api/v1/pods?resourceVersion=0", "")
				n, err := io.Copy(io.Discard, resp.Body)
				must(b, err)
				resp.Body.Close()
				b.SetBytes(n)
			}
		})
	}
}

// BenchmarkFanOut writes events of 3 kB to many watchers, 100 streams to a
// connection. One operation is one event delivered to all.
func BenchmarkFanOut(b *testing.B) {
	for _, watchers := range []int{100, 1000} {
		for _, accept := range []string{"application/json", protobufType} {
			b.Run(fmt.Sprint(watchers, "/", accept), func(b *testing.B) { fanOut(b, watchers, accept) })
		}
	}
}

func fanOut(b *testing.B, watchers int, accept string) {
	c := newCluster(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var bytes atomic.Int64
	for i := 0; i < watchers; i += 100 {
		client, _ := clients(c.authority)
		defer client.CloseIdleConnections()
		for range min(100, watchers-i) {
			resp := c.open(ctx, client, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=1", "", "Accept: "+accept)
			go func() {
				defer resp.Body.Close()
				reader := bufio.NewReaderSize(resp.Body, 64<<10)
				buf := make([]byte, 64<<10)
				for {
					n, err := reader.Read(buf)
					bytes.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
		}
	}
	waitFor := func(counter prometheus.Counter, value float64) {
		tick := time.NewTicker(100 * time.Microsecond)
		defer tick.Stop()
		for counterValue(b, counter) < value {
			<-tick.C
		}
	}
	sent := c.server.metrics.events.WithLabelValues("", "v1", "pods")
	done := 0
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		c.put(benchPod(i % 1000))
		done++
		// At most 64 events ahead of the watchers, on average.
		waitFor(sent, float64((done-64)*watchers))
	}
	waitFor(sent, float64(done*watchers))
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(done*watchers), "us/delivery")
}

// BenchmarkGet reads one object, most recent and from the cache.
func BenchmarkGet(b *testing.B) {
	c := newCluster(b)
	c.put(benchPod(1))
	for _, query := range []string{"", "?resourceVersion=0"} {
		b.Run("query"+query, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequest(http.MethodGet, "/api/v1/namespaces/ns-000/pods/pod-000001"+query, nil)
				must(b, err)
				r.Header.Set("Authorization", "Bearer "+testToken)
				c.server.ServeHTTP(&discardWriter{header: http.Header{}}, r)
			}
		})
	}
}
