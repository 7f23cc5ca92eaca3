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
// the system's page cache keeps them as long as it has room. It does not while values are
// lent, as they are to fill the caches: to map a page again takes longer than to read what
// is in it.
const (
	// residentInterval is short because lists read hundreds of megabytes in a
	// second; measuring costs microseconds.
	residentInterval = 250 * time.Millisecond
	// residentRest is how long at most nothing is measured while little is read: each time
	// that less than residentGrowth has come, the interval is doubled.
	residentRest   = 2 * time.Second
	residentGrowth = 1 << 20
	// maxResident is how much of mapped files may be in memory, the program's own
	// included: enough for the pages that writes and compactions go through.
	maxResident = 128 << 20
	// residentStep is how much more must be in memory before pages are dropped
	// again when dropping them did not get below maxResident.
	residentStep = 64 << 20
)

// limitResidentSet drops pages of the database until ctx ends, or until the
// database's mapping is not found: then it logs one line and returns. If files are
// lacking, with which it measures, it tries again.
func (l *localMember) limitResidentSet(ctx context.Context, logger *slog.Logger) {
	if !mmap.Supported {
		return
	}
	wait := residentInterval
	timer := time.NewTimer(wait)
	defer timer.Stop()
	limit, resident := int64(maxResident), int64(0)
	found, failing := false, false
	for {
		var err error
		if found {
			before := resident
			limit, resident, err = l.dropAbove(limit)
			wait = nextMeasurement(wait, resident-before)
		} else {
			err = l.findMapping()
			found = err == nil
		}
		switch {
		case err == nil && failing:
			logger.Info("pages of etcd's database are dropped again")
		case err != nil && !lacksResources(err):
			logger.Warn("pages of etcd's database are not dropped: they count as memory of this process", "error", err)
			return
		case err != nil && !failing:
			logger.Warn("pages of etcd's database are not dropped for now: they count as memory of this process", "error", err)
		}
		failing = err != nil
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// nextMeasurement returns how long to wait for the next measurement, when so many bytes have
// come since the last.
func nextMeasurement(wait time.Duration, growth int64) time.Duration {
	if growth >= residentGrowth {
		return residentInterval
	}
	return min(2*wait, residentRest)
}

// dropAbove drops the database's pages if more than limit bytes of mapped files
// are in memory, unless values are being lent, and returns the next limit and how many
// bytes are.
func (l *localMember) dropAbove(limit int64) (next, resident int64, err error) {
	lending := l.isLending()
	resident, err = mmap.Resident()
	if err != nil || resident <= limit || lending {
		return limit, resident, err
	}
	if err := l.dropPages(); err != nil {
		return limit, resident, err
	}
	resident, err = mmap.Resident()
	return max(maxResident, resident+residentStep), resident, err
}

// isLending reports whether values have been lent since the last call. It is true at first,
// because caches will be filled from what etcd's own start has mapped.
func (l *localMember) isLending() bool {
	before := l.lentBefore
	l.lentBefore = l.lent.Load()
	return before != l.lentBefore
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
