package customresource

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatusOfAnEarlierState: a definition is approved after its status was decided, and before that
// is written. The annotation is part of no generation.
func TestStatusOfAnEarlierState(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	must(t, err)
	table := builtin.Table()
	cache := watchcache.New(table.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions"), watchcache.Options{})
	set, err := registry.NewSet(registry.Config{Store: store, Resources: table, Cache: func(stored *resource.Resource) *watchcache.Cache {
		if stored == cache.Resource() {
			return cache
		}
		return nil
	}})
	must(t, err)
	definitions := set.For(cache.Resource())
	const name, approval = "gadgets.example.k8s.io", "https://github.com/kubernetes/kubernetes/pull/1"
	approve := func() {
		_, err := definitions.Update(t.Context(), "", name, func(current resource.Object) (resource.Object, error) {
			crd := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
			crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation] = approval
			return crd, nil
		}, registry.UpdateOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	caches := &filling{caches: map[*resource.Resource]*watchcache.Cache{}, added: approve} // while the definition is being installed
	l := New(Options{Registry: set, Table: table, Caches: caches, Definitions: cache.Resource(), DefinitionCache: cache, Store: store})
	ctx, cancel := context.WithCancel(context.Background())
	fed, ran := make(chan error, 1), make(chan error, 1)
	go func() { fed <- feed.New(store, []*watchcache.Cache{cache}, feed.Options{}).Run(ctx) }()
	go func() { ran <- l.Run(ctx) }()
	defer func() {
		cancel()
		must(t, <-ran)
		<-fed
		must(t, store.Close())
	}()
	must(t, cache.WaitReady(ctx))
	var crd apiextensionsv1.CustomResourceDefinition
	unapproved := headOf(t, "gadgets.yaml", 0, "example.com", "example.k8s.io", "metadata:", "metadata:\n  annotations: {api-approved.kubernetes.io: unapproved}")
	must(t, json.Unmarshal(unapproved.schemas.source, &crd))
	cache.Resource().Strategy.Default(&crd)
	created, err := definitions.Create(ctx, "", &crd, registry.WriteOptions{})
	must(t, err)
	states, err := cache.Watch(watchcache.WatchOptions{After: created.Revision})
	must(t, err)
	defer states.Close()
	var reasons []string
	testwait.Stable(t, "the status says that the definition is approved", func() (any, bool) {
		reasons = append(reasons, readReasons(t, states)...)
		return reasons, slices.Contains(reasons, "ApprovedAnnotation")
	})
	if slices.Contains(reasons, "UnapprovedAnnotation") {
		t.Errorf("the approved definition had the conditions %q", reasons)
	}
}

// readReasons reads what a watch has of the reasons of approval, since a definition is approved.
func readReasons(t *testing.T, states *watchcache.Watcher) (reasons []string) {
	t.Helper()
	var events [8]watchcache.Event
	for {
		n, err := states.Read(events[:])
		must(t, err)
		if n == 0 {
			return reasons
		}
		for _, event := range events[:n] {
			var crd apiextensionsv1.CustomResourceDefinition
			must(t, json.Unmarshal(event.Object.JSON(), &crd))
			if c := apihelpers.FindCRDCondition(&crd, apiextensionsv1.KubernetesAPIApprovalPolicyConformant); c != nil {
				reasons = append(reasons, c.Reason)
			}
		}
	}
}
