package etcd

import (
	"errors"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestMissingValues: a value that a compaction may have removed is compacted, and any other
// one is lost, for which a list does not try again.
func TestMissingValues(t *testing.T) {
	store := embedTemporary(t, EmbedConfig{})
	old, err := store.Create(t.Context(), "/a", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	latest, err := store.Update(t.Context(), "/a", []byte("2"), old, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Compact(t.Context(), latest); err != nil {
		t.Fatal(err)
	}
	tx := store.local.database.ConcurrentReadTx()
	missing := readValues(tx, []storage.KeyValue{{Key: "/b", Modified: latest}})
	tx.RUnlock()
	if !errors.Is(missing, errMissing) {
		t.Fatalf("a key without a value: %v", missing)
	}
	other := errors.New("other")
	for _, test := range []struct {
		err  error
		at   storage.Revision
		want error
	}{{missing, old, storage.ErrCompacted}, {missing, latest, errMissing}, {other, old, other}} {
		if got := store.local.whyMissing(test.err, test.at); !errors.Is(got, test.want) {
			t.Errorf("%v at %d: %v, want %v", test.err, test.at, got, test.want)
		}
	}
}
