package nodeauthorizer

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/rbac/defaults"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage/memory"
)

// BenchmarkNodes has 5,000 nodes with 100 pods each, all in one namespace, which is the
// worst case: decisions, and what changes of pods cost beside the cache's own work.
func BenchmarkNodes(b *testing.B) {
	const nodes, podsPerNode = 5000, 100
	table := builtin.Table()
	podKind, volumeKind := table.Lookup("", "v1", "pods"), table.Lookup("", "v1", "persistentvolumes")
	caches := map[*resource.Resource]*watchcache.Cache{}
	for _, kind := range []*resource.Resource{podKind, volumeKind} {
		caches[kind] = watchcache.New(kind, watchcache.Options{})
	}
	pods := caches[podKind]
	objects := make([]*watchcache.Object, 0, nodes*podsPerNode)
	for i := range nodes * podsPerNode {
		objects = append(objects, benchPod(b, pods, i, i/podsPerNode))
	}
	_, err := pods.Fill(objects, 1)
	must(b, err)
	_, err = caches[volumeKind].Fill(nil, 1)
	must(b, err)
	store, err := memory.Open(memory.Options{})
	must(b, err)
	defer store.Close() //nolint:errcheck // in memory
	set, err := registry.NewSet(registry.Config{Store: store, Resources: table, Cache: func(r *resource.Resource) *watchcache.Cache { return caches[r] }})
	must(b, err)
	n, err := New(set, Options{Rules: defaults.NodeRules(), Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	before := heap()
	must(b, n.follower.CatchUp(b.Context()))
	b.Logf("the index of %d pods takes %d MiB", nodes*podsPerNode, (heap()-before)>>20)

	for what, name := range map[string]string{"allowed": "secret-700", "shared": "kube-root-ca.crt", "refused": "secret-9"} {
		b.Run(what, func(b *testing.B) {
			asked := auth.Attributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: "default", Name: name}
			if what == "shared" {
				asked.Resource = "configmaps"
			}
			asked.User = auth.User{Name: "system:node:node-7", Groups: []string{"system:nodes"}}
			b.ReportAllocs()
			for b.Loop() {
				if decision, _, err := n.Authorize(b.Context(), asked); (decision == auth.Allow) == (what == "refused") || err != nil {
					b.Fatal(decision, err)
				}
			}
		})
	}
	event := []watchcache.Event{{Type: watchcache.Modified, Object: objects[700]}}
	b.Run("status", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n.index.applyPods(b.Context(), event)
		}
	})
	b.Run("deleted-and-added", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			event[0].Type = watchcache.Deleted
			n.index.applyPods(b.Context(), event)
			event[0].Type = watchcache.Added
			n.index.applyPods(b.Context(), event)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func benchPod(b *testing.B, pods *watchcache.Cache, i, node int) *watchcache.Object {
	b.Helper()
	value := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%06d","namespace":"default","uid":"u%d"},"spec":{"volumes":[`+
		`{"name":"s","secret":{"secretName":"secret-%d"}},{"name":"k","projected":{"sources":[{"configMap":{"name":"kube-root-ca.crt"}}]}}],`+
		`"containers":[{"name":"c","image":"registry.example.com/team/image:1.2.3"}],"nodeName":"node-%d","serviceAccountName":"default"},"status":{"phase":"Running"}}`,
		i, i, i, node)
	o, err := pods.Decode(fmt.Sprintf("default/pod-%06d", i), []byte(value), 1)
	must(b, err)
	return o
}
