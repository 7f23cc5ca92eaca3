package etcd

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// TestElectionMayBeginInAnyMomentOfAStart starts raft on the log of a member that has
// written more than 100 entries, as etcd does, and holds it in the moment that a busy
// machine makes long: etcd has applied what was replayed and has dropped what it does not
// need from memory, and raft has not been told yet. An election that begins then must
// find all that it looks for; raft panics if it does not.
func TestElectionMayBeginInAnyMomentOfAStart(t *testing.T) {
	for name, writes := range map[string]int{
		"a few entries":                     20,
		"more than etcd keeps when applied": 200,
		"more than one snapshot":            2_600,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeAndStop(t, dir, "first", writes)
			writeAndStop(t, dir, "second", 1)
			node, entries, snapshot := replay(t, dir)

			ready := node.Ready()
			applied := snapshot
			for _, entry := range ready.CommittedEntries {
				applied = entry.GetIndex()
			}
			if applied == snapshot {
				t.Fatal("the log replays nothing")
			}
			compactAsEtcd(t, entries, snapshot, applied)
			defer func() {
				if p := recover(); p != nil {
					t.Fatal("raft panics:", p)
				}
			}()
			for range 20 { // at most twice the ticks of an election
				node.Tick()
			}
		})
	}
}

// writeAndStop starts a member, creates keys below a prefix, and stops it.
func writeAndStop(t *testing.T, dir, prefix string, writes int) {
	t.Helper()
	store, err := Embed(t.Context(), EmbedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range writes {
		key := fmt.Sprintf("/%s/%d", prefix, i)
		if _, err := store.Create(t.Context(), key, []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// replay makes raft of a member's log, from the newest snapshot on.
func replay(t *testing.T, dir string) (node *raft.RawNode, kept *raft.MemoryStorage, snapshot uint64) {
	t.Helper()
	folder := datadir.ToWALDir(dir)
	known, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil {
		t.Fatal(err)
	}
	from := known[len(known)-1]
	w, err := wal.OpenForRead(zap.NewNop(), folder, &walpb.Snapshot{Index: from.Index, Term: from.Term})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, state, entries, err := w.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	kept = raft.NewMemoryStorage()
	members := &raftpb.ConfState{Voters: []uint64{1}}
	index, term := from.GetIndex(), from.GetTerm()
	if err := kept.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term, ConfState: members}}); err != nil {
		t.Fatal(err)
	}
	if err := kept.SetHardState(state); err != nil {
		t.Fatal(err)
	}
	if err := kept.Append(entries); err != nil {
		t.Fatal(err)
	}
	node, err = raft.NewRawNode(&raft.Config{
		ID: 1, ElectionTick: 5, HeartbeatTick: 1, Storage: kept, Applied: index,
		MaxSizePerMsg: math.MaxUint64, MaxInflightMsgs: 1, PreVote: true, CheckQuorum: true,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)}, // its panics panic
	})
	if err != nil {
		t.Fatal(err)
	}
	return node, kept, index
}

// compactAsEtcd drops from memory what etcd drops when it has applied what a start
// replays (snapshotIfNeededAndCompactRaftLog in its server.go).
func compactAsEtcd(t *testing.T, kept *raft.MemoryStorage, snapshot, applied uint64) {
	t.Helper()
	const keptInMemory = 100
	if applied <= snapshot+keptInMemory {
		return
	}
	first := uint64(1)
	if applied > catchUpEntries {
		first = applied - catchUpEntries
	}
	if err := kept.Compact(first); err != nil && !errors.Is(err, raft.ErrCompacted) {
		t.Fatal(err)
	}
}
