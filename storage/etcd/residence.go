package etcd

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/storage/etcd/internal/mapped"
)

// etcd maps its database, and reads all of it at the start; every page that
// was ever read then counts as memory of this process, though the server's caches
// hold what is in it. So pages are given back to the system, which keeps them
// as long as it has room.
const (
	// residenceInterval is short because lists read hundreds of megabytes in a second;
	// looking costs microseconds.
	residenceInterval = 250 * time.Millisecond
	// mostResident is how much of mapped files may be in memory, the program's
	// own included: enough for the pages that writes and compactions go through.
	mostResident = 128 << 20
	// residenceStep is how much more there must be when giving back did not help.
	residenceStep = 64 << 20
)

// databaseOf returns where etcd has its database, in a data directory.
func databaseOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// boundResidence gives pages back until ctx ends.
func (l *localMember) boundResidence(ctx context.Context, logger *slog.Logger) {
	ticker := time.NewTicker(residenceInterval)
	defer ticker.Stop()
	limit := int64(mostResident)
	for {
		resident, err := mapped.Resident()
		if err == nil && resident > limit {
			if err = l.dropPages(); err == nil {
				resident, err = mapped.Resident()
				limit = max(mostResident, resident+residenceStep)
			}
		}
		if err != nil {
			logger.Warn("the memory of etcd's database cannot be bounded", "error", err)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// dropPages takes the database's pages out of this process. An open
// transaction keeps the database from being mapped elsewhere meanwhile.
func (l *localMember) dropPages() error {
	tx := l.database.ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	_, err := mapped.Drop(l.file)
	return err
}
