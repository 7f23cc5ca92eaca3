package admission

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// alwaysDeny refuses every write. Kubernetes keeps it for tests.
func alwaysDeny(_ context.Context, q *registry.Request) error {
	if q.Operation == registry.Remove {
		return nil
	}
	return q.Forbidden(errors.New("admission control is denying all modifications"))
}
