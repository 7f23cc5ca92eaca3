package memberdir

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// keptInMemory is how many entries etcd replays before it drops the first of them from
// memory (memorySnapshotCount in its server.go).
const keptInMemory = 100

// EnsureSnapshot sees to it that a member that replays many entries begins behind a
// snapshot. The member must not be running.
//
// A member without a snapshot replays its log from entry 1. Once 100 entries are
// applied, etcd drops at least entry 1 from memory, and raft may not know yet that it
// has been applied. If the election begins in that moment, which is chance, raft looks
// at all entries that it takes for unapplied, and panics because entry 1 is gone. Behind
// a snapshot etcd drops nothing that it replays: it keeps more entries than the member
// writes between two snapshots.
//
// The snapshot is a record in the log; the database has all that it stands for.
func EnsureSnapshot(dir string) error {
	folder := datadir.ToWALDir(dir)
	if Bootstrapping(dir) || !wal.Exist(folder) {
		return nil
	}
	known, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil {
		return fmt.Errorf("snapshots of the write-ahead log: %w", err)
	}
	if n := len(known); n > 0 && known[n-1].GetIndex() > 0 {
		return nil
	}
	applied, voters, err := appliedWith(datadir.ToBackendFileName(dir))
	if err != nil {
		return fmt.Errorf("entries that the database has applied: %w", err)
	}
	if applied == 0 || voters == nil {
		return nil // killed before its database was written for the first time
	}
	if err := appendSnapshot(folder, applied, voters); err != nil {
		return fmt.Errorf("snapshot in the write-ahead log: %w", err)
	}
	return nil
}

// appliedWith reads from a database the index of the last entry that it has applied, and
// the members that it knows; nil if it knows none.
func appliedWith(path string) (applied uint64, members *raftpb.ConfState, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(schema.Meta.Name())
		if meta == nil {
			return nil
		}
		applied = consistentIndex(meta)
		value := meta.Get(schema.MetaConfStateName)
		if value == nil {
			return nil
		}
		members = &raftpb.ConfState{}
		return json.Unmarshal(value, members)
	})
	return applied, members, err
}

// appendSnapshot adds a snapshot to a log that has none, at the last entry that is both
// applied and committed. A log that etcd replays without a snapshot unharmed stays as it
// is.
func appendSnapshot(folder string, applied uint64, members *raftpb.ConfState) (err error) {
	w, err := wal.Open(zap.NewNop(), folder, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	_, state, entries, err := w.ReadAll()
	if err != nil {
		return err
	}
	at := min(applied, state.GetCommit())
	if len(entries) <= keptInMemory || at < entries[0].GetIndex() {
		return nil
	}
	term := entries[at-entries[0].GetIndex()].GetTerm()
	return w.SaveSnapshot(&walpb.Snapshot{Index: &at, Term: &term, ConfState: members})
}
