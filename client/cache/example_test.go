package cache_test

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/cache"
)

type object = *metav1.PartialObjectMetadata

func named(name, version, app string) object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: version, Labels: map[string]string{"app": app},
	}}
}

// An index finds objects by what a function makes of them.
func ExampleIndexer() {
	byApp := func(obj object) ([]string, error) { return []string{obj.Labels["app"]}, nil }
	indexer := cache.NewIndexer(nil, cache.Indexers[object]{"app": byApp})
	if err := indexer.Replace([]object{named("web-0", "1", "web"), named("web-1", "2", "web"), named("db-0", "3", "db")}); err != nil {
		fmt.Println(err)
		return
	}
	keys, err := indexer.IndexKeys("app", "web")
	slices.Sort(keys)
	fmt.Println(keys, err)
	// Output: [default/web-0 default/web-1] <nil>
}

// Pop returns an object with everything that happened to it since it was popped
// before. A list makes tombstones for objects that are gone.
func ExampleDeltaFIFO() {
	indexer := cache.NewIndexer[object](nil, nil)
	queue := cache.NewDeltaFIFO(cache.FIFOOptions[object]{Known: indexer})
	apply := func(item cache.Item[object]) error {
		for _, delta := range item.Deltas {
			fmt.Println(item.Key, delta.Type, delta.Object.ResourceVersion, "final state unknown:", delta.FinalStateUnknown)
			if delta.Type == cache.Deleted {
				indexer.Remove(item.Key)
			} else if err := indexer.Update(delta.Object); err != nil {
				return err
			}
		}
		return nil
	}
	process := func() {
		for queue.Len() > 0 {
			if err := queue.Pop(context.Background(), apply); err != nil {
				fmt.Println(err)
			}
		}
	}
	_ = queue.Add(named("web-0", "1", "web")) // it has a name: there is no error
	_ = queue.Update(named("web-0", "2", "web"))
	process()
	_ = queue.Replace([]object{named("web-1", "7", "web")}, "9")
	process()
	fmt.Println("everything is processed up to version", queue.Processed())
	// Output:
	// default/web-0 Added 1 final state unknown: false
	// default/web-0 Updated 2 final state unknown: false
	// default/web-1 Replaced 7 final state unknown: false
	// default/web-0 Deleted 2 final state unknown: true
	// everything is processed up to version 9
}
