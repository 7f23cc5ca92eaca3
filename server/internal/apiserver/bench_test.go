package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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

// BenchmarkGet reads one object, most recent and from the cache, without and with
// priority and fairness.
func BenchmarkGet(b *testing.B) {
	for _, mode := range []struct {
		name  string
		setup func(*setup)
	}{{"shares", func(*setup) {}}, {"fair", fairly(1200)}} {
		c := newCluster(b, mode.setup)
		c.put(benchPod(1))
		for _, query := range []string{"", "?resourceVersion=0"} {
			b.Run(mode.name+"/query"+query, func(b *testing.B) {
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
}
