package leader

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
)

type resourceVersionKey struct{}

// ResourceVersion returns the version of the Lease with which the leader won whose context this is, and "" if
// it is no leader's. What leaders before it have written is older, so a cache that shows this version
// shows that, too. A controller that runs with such a context requires it for its decisions (controller.Consistent).
func ResourceVersion(ctx context.Context) string {
	version, _ := ctx.Value(resourceVersionKey{}).(string)
	return version
}

func withResourceVersion(ctx context.Context, lease *coordinationv1.Lease) context.Context {
	if lease == nil {
		return ctx
	}
	return context.WithValue(ctx, resourceVersionKey{}, lease.ResourceVersion)
}
