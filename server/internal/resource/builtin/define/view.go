package define

import (
	"context"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// View makes the resource shown a view of the resource stored: both serve the
// same objects, converted by from and to.
func View[S, V resource.Object](shown, stored *resource.Resource, from func(S) (V, error), to func(V) (S, error)) {
	shown.Storage, shown.StorePrefix = stored, ""
	shown.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return from(obj.(S)) }
	shown.ToStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return to(obj.(V)) }
}
