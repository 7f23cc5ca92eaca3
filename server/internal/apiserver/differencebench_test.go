package apiserver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// fillShuffled is fill with a version for each pod, in no order of their names,
// and returns the versions by key. The last is the cache's.
func fillShuffled(b *testing.B, c *cluster, count int) (held holding, last storage.Revision) {
	b.Helper()
	base := c.caches[c.pods].Current().Revision()
	held = make(holding, count)
	objects := make([]*watchcache.Object, 0, count)
	for i, place := range rand.New(rand.NewPCG(1, 2)).Perm(count) {
		pod, rev := listedPod(i), base+1+storage.Revision(place)
		stored, err := c.pods.Encode(b.Context(), pod)
		must(b, err)
		object, err := c.caches[c.pods].Decode(c.pods.Key(pod.Namespace, pod.Name), stored, rev)
		must(b, err)
		objects = append(objects, object)
		held[object.Key] = uint64(rev)
	}
	slices.SortFunc(objects, func(a, b *watchcache.Object) int { return strings.Compare(a.Key, b.Key) })
	last = base + storage.Revision(count)
	_, err := c.caches[c.pods].Fill(objects, last)
	must(b, err)
	return held, last
}

// codeWriter is a discardWriter that remembers the status.
type codeWriter struct {
	discardWriter
	code int
}

func (w *codeWriter) WriteHeader(code int) { w.code = code }

// BenchmarkDifference answers, without a network, clients that hold 200,000
// pods of which a part has changed, beside a list of them all.
func BenchmarkDifference(b *testing.B) {
	c := newCluster(b)
	held, last := fillShuffled(b, c, 200_000)
	for _, accept := range []string{"application/json", protobufType} {
		serve := func(b *testing.B, method, path string, body []byte, code int) {
			before, rounds, w := cpuTime(b), 0, &codeWriter{}
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), method, path, bytes.NewReader(body))
				must(b, err)
				r.Header.Set("Authorization", "Bearer "+testToken)
				r.Header.Set("Accept", accept)
				r.Header.Set("Accept-Encoding", "gzip")
				r.Header.Set("Content-Type", difference.MediaType)
				w = &codeWriter{discardWriter: discardWriter{header: http.Header{}}}
				c.server.ServeHTTP(w, r)
				rounds++
			}
			b.ReportMetric((cpuTime(b)-before).Seconds()*1e3/float64(rounds), "cpu-ms/op")
			b.ReportMetric(float64(w.bytes)/1e3, "kB-sent")
			b.ReportMetric(float64(len(body))/1e3, "kB-received")
			if w.code != code {
				b.Errorf("answered with %d", w.code)
			}
		}
		form := accept[strings.LastIndexAny(accept, "./")+1:]
		for _, perMille := range []int{0, 1, 10, 100, 500, 1000} {
			known := uint64(last) - uint64(len(held)*perMille/1000)
			digest := difference.NewDigest(difference.NewSeed(), len(held))
			digest.Known = known
			hasher := difference.NewHasher(digest.Seed, digest.Bits)
			for key, version := range held {
				digest.Add(hasher.Keyed(key, min(version, known)))
			}
			code := http.StatusOK
			if perMille > 500 {
				code = http.StatusConflict
			}
			b.Run(fmt.Sprintf("%s/%v%%", form, float64(perMille)/10), func(b *testing.B) {
				serve(b, http.MethodPost, difference.Path+"/api/v1/pods?resourceVersion=0", digest.Append(nil), code)
			})
		}
		b.Run(form+"/list", func(b *testing.B) {
			serve(b, http.MethodGet, "/api/v1/pods?resourceVersion=0", nil, http.StatusOK)
		})
	}
}
