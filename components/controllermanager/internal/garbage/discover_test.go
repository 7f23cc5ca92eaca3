package garbage

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// An owner that must not go before its dependents waits for kinds that were never
// discovered, as long as for a resource that cannot be watched.
func TestOwnersWaitForUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		down := errors.New("example.com/v1: the server behind it cannot be asked")
		c.undiscovered = down
		o := thing("owner")
		o.marked = time.Now()
		if err := c.awaitGraph(t.Context(), o); !errors.Is(err, errGraphBehind) || !errors.Is(err, down) {
			t.Errorf("kinds are unknown, and the wait ended with %v", err)
		}
		time.Sleep(brokenPatience + time.Second)
		if err := c.awaitGraph(t.Context(), o); err != nil {
			t.Errorf("the group has not come back, and the owner still waits: %v", err)
		}
		c.undiscovered = nil
		o.marked = time.Now()
		if err := c.awaitGraph(t.Context(), o); err != nil {
			t.Errorf("all kinds are known: %v", err)
		}
	})
}
