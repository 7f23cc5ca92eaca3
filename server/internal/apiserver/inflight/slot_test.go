package inflight

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
)

// TestBlockedWritesGiveTheSlotBack, and take it again.
func TestBlockedWritesGiveTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, users := NewSlots(1), NewUserSeats(1)
		a, b := slots.Slot(t.Context(), user("a"), users.Flow(user("a"))), slots.Slot(t.Context(), user("b"), users.Flow(user("b")))
		if err := a.Take(); err != nil {
			t.Fatal(err)
		}
		a.BeginWrite()
		if err := b.Take(); !errors.Is(err, fairqueue.ErrConcurrencyLimit) {
			t.Errorf("a write that does not block has given the slot back: %v", err)
		}
		if err := a.EndWrite(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * parkAfter)
		if slots.Parked() != 0 || slots.InUse() != 1 {
			t.Errorf("%d are parked between writes", slots.Parked())
		}
		a.BeginWrite()
		time.Sleep(2 * parkAfter)
		synctest.Wait()
		if err := b.Take(); err != nil {
			t.Fatalf("a write that blocks holds the slot: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- a.EndWrite() }()
		synctest.Wait()
		if slots.Waiting() != 1 || slots.Parked() != 1 {
			t.Errorf("%d wait, %d are parked", slots.Waiting(), slots.Parked())
		}
		b.Release()
		if err := <-ended; err != nil || slots.InUse() != 1 || slots.Parked() != 0 {
			t.Errorf("%v, %d in use, %d parked", err, slots.InUse(), slots.Parked())
		}
		a.BeginWrite()
		time.Sleep(2 * parkAfter)
		synctest.Wait()
		a.Release() // while it is parked
		if slots.InUse() != 0 || slots.Parked() != 0 {
			t.Errorf("left: %d in use, %d parked", slots.InUse(), slots.Parked())
		}
	})
}

// TestParkedRequestsAreBounded: beyond that, blocked requests keep their slots.
func TestParkedRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		slots, users := NewSlots(n), NewUserSeats(n)
		blocked := 0
		for {
			u := user(fmt.Sprint(blocked % 50))
			slot := slots.Slot(t.Context(), u, users.Flow(u))
			if slot.Take() != nil {
				break
			}
			slot.BeginWrite()
			blocked++
			time.Sleep(2 * parkAfter)
		}
		if slots.InUse() != n || slots.Parked() != parkedPerSlot*n {
			t.Errorf("%d in use, %d parked", slots.InUse(), slots.Parked())
		}
	})
}
