// Package diskreserve refuses writes while there is still room on a disk.
//
// etcd ends its process when a file of its log cannot be written or made. What is left
// is for writes that have begun, the next segments of the log, compactions, and
// deletions, by which users make room.
package diskreserve

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/storage"
)

const (
	// Default is how many bytes of the disk stay free.
	Default = 256 << 20
	// deletions may use the reserve down to this part of it.
	deletionsShare = 2
	// interval is how often the free bytes are measured, at least.
	interval = time.Second
	// writesPerMeasure divides the reserve into the bytes that are written between
	// two measures at most.
	writesPerMeasure = 16
)

// Reserve refuses writes when the disk of a folder has less room than is kept in
// reserve, and takes them again when there is room. A nil one refuses nothing. It is
// safe for concurrent use.
type Reserve struct {
	dir     string
	reserve int64
	measure func(dir string) (free int64, err error)
	logger  *slog.Logger

	free    atomic.Int64 // by the last measure
	written atomic.Int64 // bytes since then
	low     atomic.Bool  // as the log has it
}

// New returns a reserve of that many bytes on the disk of dir: Default if it is 0. It
// returns nil if reserve is negative, or if measure cannot say how many bytes are free.
func New(dir string, reserve int64, measure func(string) (int64, error), logger *slog.Logger) *Reserve {
	if reserve < 0 {
		return nil
	}
	if reserve == 0 {
		reserve = Default
	}
	r := &Reserve{dir: dir, reserve: reserve, measure: measure, logger: logger}
	if err := r.Update(); err != nil {
		logger.Warn("the room on the disk cannot be measured: etcd ends this process when the disk is full", "dir", dir, "error", err)
		return nil
	}
	return r
}

// Update measures. Writes that run meanwhile are counted twice, never not at all.
func (r *Reserve) Update() error {
	free, err := r.measure(r.dir)
	if err != nil {
		return err
	}
	r.free.Store(free)
	r.written.Store(0)
	if low := free < r.reserve; low != r.low.Swap(low) {
		if low {
			r.logger.Error("the disk is nearly full: writes are refused until there is room", "dir", r.dir, "free", free, "reserve", r.reserve)
		} else {
			r.logger.Info("the disk has room again: writes are taken", "dir", r.dir, "free", free)
		}
	}
	return nil
}

// Run measures until ctx ends.
func (r *Reserve) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := r.Update(); err != nil {
				r.logger.Warn("the room on the disk was not measured", "dir", r.dir, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// AdmitPut returns storage.ErrFull if a value must not be written.
func (r *Reserve) AdmitPut(bytes int) error {
	if r == nil {
		return nil
	}
	return r.admit(bytes, r.reserve)
}

// AdmitDelete is admitPut for a deletion, which is written, too, but makes room
// after the next compaction.
func (r *Reserve) AdmitDelete() error {
	if r == nil {
		return nil
	}
	return r.admit(0, r.reserve/deletionsShare)
}

// entryBytes is what a write takes beside its value.
const entryBytes = 512

func (r *Reserve) admit(bytes int, reserve int64) error {
	written := r.written.Add(int64(bytes + entryBytes))
	if written > r.reserve/writesPerMeasure {
		if err := r.Update(); err != nil {
			return fmt.Errorf("%w: the room on the disk of %s cannot be measured: %w", storage.ErrUnavailable, r.dir, err)
		}
		written = r.written.Load()
	}
	if free := r.free.Load() - written; free < reserve {
		return r.full(free)
	}
	return nil
}

func (r *Reserve) full(free int64) error {
	return fmt.Errorf("%w: the disk of %s has %d MiB left, and %d MiB are kept in reserve: make room there, and writes go on by themselves",
		storage.ErrFull, r.dir, max(free, 0)>>20, r.reserve>>20)
}

// Check returns why writes are refused.
func (r *Reserve) Check() error {
	if r == nil {
		return nil
	}
	if free := r.free.Load(); free < r.reserve {
		return r.full(free)
	}
	return nil
}
