package etcd

import (
	"slices"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

// TestReplayReturnsACommittedChangeOnce: after a commit, and until the next
// change, etcd reads the changes that it has just committed from memory as well,
// if they have been read from there before.
func TestReplayReturnsACommittedChangeOnce(t *testing.T) {
	store, err := Embed(t.Context(), EmbedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	start, err := store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var rev storage.Revision
	var want []storage.Revision
	for _, key := range []string{"/a", "/b", "/c"} {
		if rev, err = store.Create(t.Context(), key, []byte(key), 0); err != nil {
			t.Fatal(err)
		}
		want = append(want, rev)
	}
	if rev, err = store.Delete(t.Context(), "/b", want[1]); err != nil {
		t.Fatal(err)
	}
	want = append(want, rev)
	for _, when := range []string{"before the commit", "after it"} {
		var got []storage.Revision
		err := store.Replay(t.Context(), "/", start, rev, func(events []storage.Event) error {
			for _, e := range events {
				got = append(got, e.Revision)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s the revisions %v were replayed, want %v; %v", when, got, want, err)
		}
		store.local.database.ForceCommit()
	}
}
