package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/storage/etcd/internal/mmap"
)

// bbolt maps etcd's database, and etcd reads all of it at start. Every page that
// was ever read then counts as memory of this process, although the server's
// caches hold what is in it. So the member drops its pages when there are many;
// the system's page cache keeps them as long as it has room.
const (
	// residentInterval is short because lists read hundreds of megabytes in a
	// second; measuring costs microseconds.
	residentInterval = 250 * time.Millisecond
	// maxResident is how much of mapped files may be in memory, the program's own
	// included: enough for the pages that writes and compactions go through.
	maxResident = 128 << 20
	// residentStep is how much more must be in memory before pages are dropped
	// again when dropping them did not get below maxResident.
	residentStep = 64 << 20
)

// limitResidentSet drops pages of the database until ctx ends, or until the
// database's mapping is not found: then it logs one line and returns.
func (l *localMember) limitResidentSet(ctx context.Context, logger *slog.Logger) {
	if !mmap.Supported {
		return
	}
	ticker := time.NewTicker(residentInterval)
	defer ticker.Stop()
	limit := int64(maxResident)
	err := l.findMapping()
	for err == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		limit, err = l.dropAbove(limit)
	}
	logger.Warn("pages of etcd's database are not dropped: they count as memory of this process", "error", err)
}

// dropAbove drops the database's pages if more than limit bytes of mapped files
// are in memory, and returns the next limit.
func (l *localMember) dropAbove(limit int64) (int64, error) {
	resident, err := mmap.Resident()
	if err != nil || resident <= limit {
		return limit, err
	}
	if err := l.dropPages(); err != nil {
		return limit, err
	}
	resident, err = mmap.Resident()
	return max(maxResident, resident+residentStep), err
}

// findMapping returns an error if bbolt has not mapped the database as expected.
func (l *localMember) findMapping() error {
	size, err := mmap.Size(l.file)
	if err == nil && size == 0 {
		err = fmt.Errorf("%s is not mapped", l.file)
	}
	return err
}

// dropPages removes the database's pages from this process. bbolt maps a database
// elsewhere, when it grows, only while no transaction is open: the one opened here
// keeps the mapping where it is.
func (l *localMember) dropPages() error {
	tx := l.database.ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	size, err := mmap.DropPages(l.file)
	if err == nil && size == 0 && mmap.Supported {
		err = fmt.Errorf("%s is not mapped any more", l.file)
	}
	return err
}
