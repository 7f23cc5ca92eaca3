package read

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestUsersTakeTurnsToSort: one that comes after many of another user waits for one of them.
func TestUsersTakeTurnsToSort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newSortTurns()
		release, err := turns.acquire(t.Context(), "many")
		must(t, err)
		var order []string // of those that sort, one at a time
		wait := func(user string) {
			go func() {
				release, err := turns.acquire(t.Context(), user)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, user)
				release()
			}()
			synctest.Wait()
		}
		for range 10 {
			wait("many")
		}
		wait("few")
		canceled, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, user := range []string{"many", "gone"} {
			go func() {
				_, err := turns.acquire(canceled, user)
				ended <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("after its end: %v", err)
			}
		}
		release()
		synctest.Wait()
		if at := slices.Index(order, "few"); at < 0 || at > 1 || len(order) != 11 {
			t.Errorf("they sorted in the order %q", order)
		}
		if len(turns.users) != 0 {
			t.Errorf("%d users are remembered", len(turns.users))
		}
	})
}
