package watchcache

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/watchcache/backfill"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/storage"
)

// TestSharedRevisionsOfEarlierHistory, although the log has no room for it: a client
// whose watch broke in the middle of such a revision gets the rest by coalesced
// history.
func TestSharedRevisionsOfEarlierHistory(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 1}, podA, podB, podC)
	c.PrependHistory(backfill.EarlierHistory{
		Generation: c.Generation(), From: 7, Through: c.NewCollector().Through(), Shared: eventlog.SharedRevisions{5},
	})
	for revision, want := range map[storage.Revision]storage.Revision{4: 4, 5: 4, 6: 6, 7: 7} {
		if got := c.shared.ResumeAfter(revision); got != want {
			t.Errorf("a client at %d resumes after %d, want %d", revision, got, want)
		}
	}
}
