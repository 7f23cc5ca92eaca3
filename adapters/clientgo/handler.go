package clientgo

import (
	clientgocache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
)

// adapted is a handler of client-go as one of ours.
type adapted[T client.Object] struct {
	clientgocache.ResourceEventHandler
}

func (a adapted[T]) OnAdd(obj T, initial bool) { a.ResourceEventHandler.OnAdd(obj, initial) }
func (a adapted[T]) OnUpdate(old, obj T)       { a.ResourceEventHandler.OnUpdate(old, obj) }

// OnDelete passes a tombstone if the deletion itself was missed.
func (a adapted[T]) OnDelete(obj T, finalStateUnknown bool) {
	if !finalStateUnknown {
		a.ResourceEventHandler.OnDelete(obj)
		return
	}
	a.ResourceEventHandler.OnDelete(clientgocache.DeletedFinalStateUnknown{
		Key: cache.ObjectKey(obj.GetNamespace(), obj.GetName()), Obj: obj,
	})
}

// registration is a handler's.
type registration struct {
	*informer.Registration
	of   any // the informer
	name string
}

func (r *registration) HasSyncedChecker() clientgocache.DoneChecker {
	return checker{"handler of informer " + r.name, r.Synced()}
}

// checker is a channel with a name.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }
