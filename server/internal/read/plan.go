package read

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// maxCounted bounds what counting candidates costs a traced list.
const maxCounted = 1_000_000

// fromStore is the plan of a list that the cache is too young for: the store reads its objects.
const fromStore = "store"

// tracePlan has the span of a list say how it finds its objects. It costs nothing if the list is
// not traced.
func tracePlan(ctx context.Context, source readSource, selection *watchcache.Selection) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if source.storeRevision != 0 {
		span.SetAttributes(attribute.String("levelwire.list.plan", fromStore))
		return
	}
	plan := source.snapshot.Plan(selection, maxCounted)
	span.SetAttributes(attribute.String("levelwire.list.plan", string(plan.Access)), attribute.Int("levelwire.list.candidates", plan.Candidates))
}
