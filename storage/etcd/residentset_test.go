package etcd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

func TestPagesOfTheDatabaseAreGivenBackUnderReadsAndWrites(t *testing.T) {
	store, err := Embed(t.Context(), EmbedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const keys = 200
	value := func(i int) []byte { return bytes.Repeat(fmt.Append(nil, "value ", i, " "), 4000) }
	for i := range keys {
		if _, err := store.Create(t.Context(), fmt.Sprintf("/k/%03d", i), value(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := store.Create(t.Context(), fmt.Sprintf("/w/%06d", i), value(i), 0); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		if err := store.local.dropPages(); err != nil {
			t.Error(err)
		}
		page, err := store.List(t.Context(), "/k/", storage.ListOptions{})
		if err != nil || len(page.Items) != keys {
			t.Fatalf("%d items, %v", len(page.Items), err)
		}
		for i, item := range page.Items {
			if !bytes.Equal(item.Value, value(i)) {
				t.Fatalf("%s has another value than was written", item.Key)
			}
		}
	}
	stop()
	wait.Wait()
	if runtime.GOOS != "linux" {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(maps), store.local.file) {
		t.Errorf("%s, whose pages are given back, is not what etcd has mapped", store.local.file)
	}
}

// TestPagesAreMeasuredLessOftenAtRest: an idle server is not woken to measure what does not
// change, and measures often again as soon as something is read.
func TestPagesAreMeasuredLessOftenAtRest(t *testing.T) {
	wait := residentInterval
	for range 10 {
		wait = nextMeasurement(wait, residentGrowth-1)
	}
	if wait != residentRest {
		t.Errorf("at rest, every %v", wait)
	}
	if wait = nextMeasurement(wait, residentGrowth); wait != residentInterval {
		t.Errorf("when pages are read, after %v", wait)
	}
}

// TestPagesStayWhileValuesAreLent: a start fills its caches from the pages that etcd has
// mapped, and they are dropped when it has.
func TestPagesStayWhileValuesAreLent(t *testing.T) {
	local := &localMember{lentBefore: -1}
	for i, lent := range []int64{0, 0, 2, 1, 0} {
		local.lent.Add(lent)
		if want := i == 0 || lent > 0; local.isLending() != want {
			t.Errorf("measurement %d, with %d more pages lent: lending is not %v", i, lent, want)
		}
	}
}
