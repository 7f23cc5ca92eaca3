package customresource

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// defined is a definition as a cache holds it whose status needs no write.
func defined(t *testing.T, definitions *watchcache.Cache, file string, revision storage.Revision) *watchcache.Object {
	t.Helper()
	h := headOf(t, file, revision)
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(h.schemas.source, &crd); err != nil {
		t.Fatal(err)
	}
	definitions.Resource().Strategy.Default(&crd)
	h.Spec.Names = crd.Spec.Names
	says := decideStatus(h, h.Status.AcceptedNames, takenNames{})
	says.writeTo(&crd, metav1.Time{})
	value, err := definitions.Resource().Encode(t.Context(), &crd)
	if err != nil {
		t.Fatal(err)
	}
	object, err := definitions.Decode(crd.Name, value, revision)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// filling has every new cache filled, with nothing, and calls added first.
type filling struct {
	caches map[*resource.Resource]*watchcache.Cache
	added  func()
}

func (f *filling) Add(stored *resource.Resource) *watchcache.Cache {
	f.added()
	cache := watchcache.New(stored, watchcache.Options{})
	_, _ = cache.Fill(nil, 1) // cannot fail: there are no keys
	f.caches[stored] = cache
	return cache
}

func (f *filling) Of(stored *resource.Resource) *watchcache.Cache { return f.caches[stored] }

func (f *filling) Remove(stored *resource.Resource) { delete(f.caches, stored) }

// TestLifecycleThatFellBehind: more has happened to the definitions than the
// history holds, and the lifecycle begins with what there is.
func TestLifecycleThatFellBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := builtin.Table()
		definitions := watchcache.New(table.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions"), watchcache.Options{HistoryEvents: 1})
		gadgets := defined(t, definitions, "gadgets.yaml", 1)
		if _, err := definitions.Fill([]*watchcache.Object{gadgets}, 1); err != nil {
			t.Fatal(err)
		}
		first := true
		caches := &filling{caches: map[*resource.Resource]*watchcache.Cache{}, added: func() {
			if !first {
				return
			}
			first = false // while gadgets are being installed
			widgets := defined(t, definitions, "widgets.yaml", 3)
			definitions.Apply([]watchcache.Change{{Key: gadgets.Key, Revision: 2}, {Key: widgets.Key, Object: widgets, Revision: 3}})
		}}
		l := New(Options{Registry: new(registry.Set), Table: table, Caches: caches, Definitions: definitions.Resource(), DefinitionCache: definitions})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		synctest.Wait()
		if table.Lookup("example.com", "v1", "gadgets") != nil || len(caches.caches) != 1 {
			t.Error("what is no longer defined is served")
		}
		if table.Lookup("example.com", "v1", "widgets") == nil {
			t.Error("what is defined is not served")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
