package resourcequota

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/quota"
)

// kinds watches the kinds that quotas name and that are not always watched, each for as long
// as a quota names it. It is safe for concurrent use.
type kinds struct {
	client *client.Client
	log    *slog.Logger
	// handle adds a handler of the objects of a kind to an informer of the factory.
	handle func(factory *informer.Factory, resource schema.GroupResource, served schema.GroupVersionResource) (*informer.Registration, error)
	// synced is called when all objects of a kind are known, from a goroutine.
	synced func()
	// forget is called when a kind is not watched any more.
	forget func(resource schema.GroupResource)

	mu      sync.Mutex
	closed  bool
	watched map[schema.GroupResource]*watchedKind
	named   map[controller.Key][]schema.GroupResource // by the quotas
	waiting sync.WaitGroup
}

// watchedKind is an informer of a kind. A factory of its own lets it be
// stopped alone.
type watchedKind struct {
	factory      *informer.Factory
	registration *informer.Registration
}

// name records which kinds a quota names: all others that no quota names are not watched
// any more. A quota that is gone names none.
func (k *kinds) name(quota controller.Key, resources []schema.GroupResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(resources) == 0 {
		delete(k.named, quota)
	} else {
		k.named[quota] = resources
	}
	if len(k.watched) == 0 {
		return
	}
	used := map[schema.GroupResource]bool{}
	for _, list := range k.named {
		for _, resource := range list {
			used[resource] = true
		}
	}
	for resource, w := range k.watched {
		if used[resource] {
			continue
		}
		// The lock is held meanwhile, so that a quota which names the kind again begins
		// with an empty ledger. Handlers do not take the lock.
		<-w.registration.Remove()
		w.factory.Shutdown()
		k.forget(resource)
		delete(k.watched, resource)
	}
}

// follows reports whether the objects of a kind are all known. If the kind is not watched
// yet, that begins; synced is called when they are.
func (k *kinds) follows(resource schema.GroupResource, served schema.GroupVersionResource) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.watched[resource]; ok {
		return known.registration.HasSynced(), nil
	}
	if k.closed {
		return false, informer.ErrStopped
	}
	w := &watchedKind{factory: informer.NewFactory(k.client, informer.Options{Logger: k.log})}
	var err error
	if w.registration, err = k.handle(w.factory, resource, served); err != nil {
		return false, err
	}
	k.watched[resource] = w
	w.factory.Start(context.Background()) // ends with Shutdown
	k.waiting.Go(func() {
		select {
		case <-w.registration.Synced():
			k.synced()
		case <-w.registration.Done():
		}
	})
	return false, nil
}

// list returns the kinds that are watched.
func (k *kinds) list() []schema.GroupResource {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []schema.GroupResource
	for resource := range k.watched {
		list = append(list, resource)
	}
	return list
}

// close ends all watches.
func (k *kinds) close() {
	k.mu.Lock()
	watched := k.watched
	k.watched, k.closed = map[schema.GroupResource]*watchedKind{}, true
	k.mu.Unlock()
	for _, w := range watched {
		w.factory.Shutdown()
	}
	k.waiting.Wait()
}

// countedKinds returns the kinds that a quota names and that are watched for quotas alone.
func countedKinds(names map[schema.GroupResource]quota.Evaluator) []schema.GroupResource {
	var list []schema.GroupResource
	for resource := range names {
		switch resource {
		case podResource, serviceResource, claimResource:
		default:
			list = append(list, resource)
		}
	}
	return list
}
