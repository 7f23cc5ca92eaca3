package controller

import (
	"context"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/internal/deepcopy"
)

// AsReconciler returns a ReconcileFunc that calls reconcile with the object of
// the key, from the informer's cache. It is a copy, which reconcile may change.
// An object that does not exist any more has no call: what remains to be done
// after a deletion needs a finalizer, or a ReconcileFunc of keys.
func AsReconciler[T client.Object](inf *informer.SharedInformer[T], reconcile func(ctx context.Context, obj T) (Result, error)) ReconcileFunc {
	lister := inf.Lister()
	return func(ctx context.Context, key Key) (Result, error) {
		obj, ok := lister.Get(key.Namespace, key.Name)
		if !ok {
			return Result{}, nil
		}
		return reconcile(ctx, deepcopy.Of(obj))
	}
}
