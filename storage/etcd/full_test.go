package etcd

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestFullDisk: with the disk nearly full, the store refuses what takes room, and goes
// on by itself when there is room again.
func TestFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	const reserve = 64 << 20
	s, err := Embed(t.Context(), EmbedConfig{
		Dir: t.TempDir(), DiskReserveBytes: reserve, diskFree: func(string) (int64, error) { return free.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := t.Context()
	set := func(bytes int64) {
		t.Helper()
		free.Store(bytes)
		if err := s.reserve.Update(); err != nil {
			t.Fatal(err)
		}
	}
	rev, err := s.Create(ctx, "/a", []byte("x"), 0)
	if err != nil {
		t.Fatal(err)
	}

	set(reserve - 1)
	if _, err := s.Create(ctx, "/b", []byte("x"), 0); !errors.Is(err, storage.ErrFull) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("create on a full disk: %v", err)
	}
	if _, err := s.Update(ctx, "/a", []byte("y"), rev, 0); !errors.Is(err, storage.ErrFull) {
		t.Errorf("update on a full disk: %v", err)
	}
	if err := s.CheckWrites(); !errors.Is(err, storage.ErrFull) {
		t.Errorf("readiness: %v", err)
	}
	if kv, err := s.Get(ctx, "/a", 0); err != nil || string(kv.Value) != "x" {
		t.Errorf("get on a full disk: %v, %v", kv, err)
	}
	if _, err := s.Delete(ctx, "/a", rev); err != nil {
		t.Errorf("delete on a nearly full disk: %v", err)
	}

	set(reserve / 4)
	if _, err = s.Create(ctx, "/c", []byte("x"), 0); err == nil {
		t.Fatal("created on a full disk")
	}
	if _, err := s.Delete(ctx, "/c", 1); !errors.Is(err, storage.ErrFull) {
		t.Errorf("delete on a full disk: %v", err)
	}

	set(1 << 40)
	if _, err := s.Create(ctx, "/b", []byte("x"), 0); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.CheckWrites(); err != nil {
		t.Errorf("readiness with room again: %v", err)
	}
}

// TestQuotaIsNotForEver fills the database up to its quota, makes room, and starts
// again: the alarm is gone.
func TestQuotaIsNotForEver(t *testing.T) {
	config := EmbedConfig{Dir: t.TempDir(), QuotaBytes: 24 << 20}
	ctx := t.Context()
	s, err := Embed(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	var last storage.Revision
	revisions := map[string]storage.Revision{}
	value := []byte(strings.Repeat("x", 256<<10))
	for i := 0; err == nil; i++ {
		key := fmt.Sprintf("/fill/%d", i)
		if last, err = s.Create(ctx, key, value, 0); err == nil {
			revisions[key] = last
		}
	}
	if !errors.Is(err, storage.ErrFull) || !strings.Contains(err.Error(), "--quota-backend-bytes") {
		t.Fatalf("beyond the quota: %v", err)
	}
	if err := s.CheckWrites(); !errors.Is(err, storage.ErrFull) || !strings.Contains(err.Error(), "--quota-backend-bytes") {
		t.Errorf("readiness beyond the quota: %v", err)
	}
	for key, rev := range revisions {
		if last, err = s.Delete(ctx, key, rev); err != nil {
			t.Fatalf("deletion makes room, but: %v", err)
		}
	}
	if err := s.Compact(ctx, last); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Embed(ctx, config); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckWrites(); err != nil {
		t.Errorf("readiness after the start: %v", err)
	}
	if _, err := s.Create(ctx, "/after", value, 0); err != nil {
		t.Errorf("after the start: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
