package memberdir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// etcd panics in goroutines of its own over some damage of its files, waits for ever
// over other, and cuts a log behind a damaged record. The latter loses writes that
// were acknowledged, and the next ones, too: their places in the log are those of
// writes that the database has. So a start looks at the files first.

// DamageError reports files of an embedded member that are missing or damaged.
type DamageError struct {
	// Path is the file or folder.
	Path string
	// Database is the member's database if that is whole, and empty if not. A member
	// can be restored from it.
	Database string
	// Err says what is wrong.
	Err error
}

func (e *DamageError) Error() string {
	advice := "restore a backup: levelwire snapshot restore FILE --data-dir NEW"
	if e.Database != "" {
		advice = fmt.Sprintf("restore the database, which is whole, or a backup: levelwire snapshot restore %s --data-dir NEW", e.Database)
	}
	return fmt.Sprintf("%s is missing or damaged: %v; %s", e.Path, e.Err, advice)
}

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Err }

// Applied reads the index of the last entry of the log that is in a database. It also
// visits all pages, as etcd does at its start, in a way that reports damage as an
// error.
func Applied(db *bbolt.DB, path string) (index uint64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file may end before its pages do
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return index, db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("it has %d of %d bytes", info.Size(), tx.Size())
		}
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			index = consistentIndex(meta)
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if b == nil {
				return fmt.Errorf("%q is no bucket", name)
			}
			b.Stats()
			return nil
		})
	})
}

// consistentIndex reads the index of the last applied entry from the bucket that etcd
// keeps it in; 0 if it was never written.
func consistentIndex(meta *bbolt.Bucket) (index uint64) {
	value := meta.Get(schema.MetaConsistentIndexKeyName)
	if len(value) != binary.Size(index) {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// verifyLog fails if the write-ahead log of a member cannot be read, or does not reach
// the entry that its database has applied last.
func verifyLog(dir string, applied uint64) error {
	folder := datadir.ToWALDir(dir)
	damage := func(err error) error {
		return &DamageError{Path: folder, Database: datadir.ToBackendFileName(dir), Err: err}
	}
	if !wal.Exist(folder) {
		return damage(errors.New("the write-ahead log has no segment"))
	}
	end, err := lastEntry(folder, datadir.ToSnapDir(dir))
	switch {
	case err != nil:
		return damage(fmt.Errorf("the write-ahead log cannot be read: %w", err))
	case end < applied:
		return damage(fmt.Errorf("the write-ahead log ends at entry %d, and the database has applied entry %d", end, applied))
	}
	return nil
}

// lastEntry reads the index of the last entry of a log, from the newest snapshot on.
func lastEntry(folder, snapshots string) (index uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	snapshotter := snap.New(zap.NewNop(), snapshots)
	if newest, err := snapshotter.Load(); err == nil {
		if index, err := readLog(folder, newest); err == nil {
			return index, nil
		}
	}
	// A snapshot counts only once the log says so, and the file is written before.
	known, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil {
		return 0, err
	}
	newest, err := snapshotter.LoadNewestAvailable(known)
	if err != nil && !errors.Is(err, snap.ErrNoSnapshot) {
		return 0, err
	}
	return readLog(folder, newest)
}

// readLog reads the index of the last entry of a log behind a snapshot, which may be nil.
func readLog(folder string, after *raftpb.Snapshot) (uint64, error) {
	index, term := after.GetMetadata().GetIndex(), after.GetMetadata().GetTerm()
	w, err := wal.OpenForRead(zap.NewNop(), folder, &walpb.Snapshot{Index: &index, Term: &term})
	if err != nil {
		return 0, err
	}
	defer func() { _ = w.Close() }() // fails always: there is no folder to unlock
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	if n := len(entries); n > 0 {
		return entries[n-1].GetIndex(), nil
	}
	return index, nil
}

// verifyNoDatabase fails if a member without a database needs one: the entries before a
// snapshot are only there.
func verifyNoDatabase(dir string) error {
	_, err := snap.New(zap.NewNop(), datadir.ToSnapDir(dir)).Load()
	if errors.Is(err, snap.ErrNoSnapshot) || errors.Is(err, fs.ErrNotExist) {
		return nil // the write-ahead log has everything
	}
	return &DamageError{Path: datadir.ToBackendFileName(dir), Err: errors.New("there is no database")}
}

// Unusable says what etcd has said when it could not start on a member's data.
func Unusable(dir, said string) error {
	return &DamageError{Path: datadir.ToMemberDir(dir), Err: fmt.Errorf("cannot use the data: %s", said)}
}
