package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Defaults of CompactionOptions.
const (
	DefaultCompactionInterval  = time.Minute
	DefaultCompactionRetention = 5 * time.Minute
)

// CompactionOptions bounds the history that CompactLoop keeps.
type CompactionOptions struct {
	// Interval is how often history is compacted. 0 means
	// DefaultCompactionInterval.
	Interval time.Duration
	// Retention is how long every revision stays readable at least; it may
	// stay up to an Interval longer. 0 means DefaultCompactionRetention.
	Retention time.Duration
	// Revisions is how many revisions stay readable beyond that, whatever their
	// age; up to a tenth more may, so that compaction, which writes itself, does
	// not lead to the next. 0 means none.
	Revisions int
	// Meter, if not nil, bounds the bytes of history, whatever Retention and
	// Revisions ask for: if they are too many, it is compacted at once, so that
	// they are within the limit.
	Meter *Meter
	// Before, if set, is called before each compaction, to save what the compaction
	// removes. If it returns false the compaction is skipped; if it fails the
	// compaction is tried again at the next interval.
	Before func(ctx context.Context, at Revision) (bool, error)
	// Failed, if set, is called after each compaction that failed.
	Failed func()
	// Now returns the time by which revisions age. Nil means time.Now.
	Now func() time.Time
	// Logger gets compactions that failed and are tried again at the next interval.
	// Nil is slog.Default().
	Logger *slog.Logger
}

// EnsureDefaults returns the options with defaults in place of zeros.
func (o CompactionOptions) EnsureDefaults() CompactionOptions {
	if o.Interval == 0 {
		o.Interval = DefaultCompactionInterval
	}
	if o.Retention == 0 {
		o.Retention = DefaultCompactionRetention
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Validate reports options that cannot be kept.
func (o CompactionOptions) Validate() error {
	if o.Interval < 0 || o.Retention < 0 || o.Revisions < 0 {
		return fmt.Errorf("compaction interval %v, retention %v and %d revisions must not be negative", o.Interval, o.Retention, o.Revisions)
	}
	return nil
}

// Compactable is what CompactLoop needs of a Store.
type Compactable interface {
	Current(ctx context.Context) (Revision, error)
	Compactor
}

// CompactLoop compacts store every interval to the revision that was current a
// retention ago, until ctx ends or the store is closed; it returns which. Several
// servers may do so on one store: each removes what is older than its own
// retention, and a compaction that another server has done is not an error. So the
// shortest retention holds.
//
// Ages are counted from when the loop first saw a revision, for which it looks many times
// in an interval: so what is older than a retention and an interval is gone. After a restart
// the whole history counts as new: nothing is removed before one retention has passed.
func CompactLoop(ctx context.Context, store Compactable, opts CompactionOptions) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	opts = opts.EnsureDefaults()
	ages := revisionAges{}
	looks := looksIn(opts.Interval)
	ticker := time.NewTicker(opts.Interval / time.Duration(looks))
	defer ticker.Stop()
	for {
		err := compactOnce(ctx, store, &ages, opts)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrClosed):
			return err
		case err != nil:
			opts.Logger.Warn("history was not compacted, trying again", "in", opts.Interval, "error", err)
			if opts.Failed != nil {
				opts.Failed()
			}
		}
		if err := awaitNext(ctx, store, &ages, ticker, looks, opts); err != nil {
			return err
		}
	}
}

// looksIn returns how often CompactLoop looks for the current revision in an interval: often
// enough that ages are exact to a thirtieth of it, but not more than once a second.
func looksIn(interval time.Duration) int {
	return int(max(1, min(30, interval/time.Second)))
}

// awaitNext waits until it is time for the next compaction, and records which revisions are current
// until then.
func awaitNext(ctx context.Context, store Compactable, ages *revisionAges, ticker *time.Ticker, looks int, opts CompactionOptions) error {
	for look := 1; ; look++ {
		select {
		case <-ticker.C:
		case <-opts.Meter.exceeded():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if look == looks {
			return nil
		}
		// The compaction reports what has failed.
		if current, err := store.Current(ctx); err == nil {
			ages.record(opts.Now(), current)
		}
	}
}

// compactOnce records the current revision and compacts to the newest one that
// has reached the retention, or further if that leaves too many bytes.
func compactOnce(ctx context.Context, store Compactable, ages *revisionAges, opts CompactionOptions) error {
	current, err := store.Current(ctx)
	if err != nil {
		return fmt.Errorf("current revision: %w", err)
	}
	now := opts.Now()
	ages.record(now, current)
	target, ok := ages.due(now.Add(-opts.Retention))
	if keep := Revision(opts.Revisions); ok && keep > 0 {
		target = min(target, current-keep)
		ok = target > ages.compacted+keep/10
	}
	if least, over := opts.Meter.excess(); over && (!ok || least > target) {
		target = min(least, current)
		ok = target > ages.compacted
	}
	if !ok {
		return nil
	}
	if opts.Before != nil {
		worth, err := opts.Before(ctx, target)
		if err != nil {
			return fmt.Errorf("before the compaction to revision %d: %w", target, err)
		}
		if !worth {
			ages.done(target)
			opts.Meter.forget(target)
			return nil
		}
	}
	err = store.Compact(ctx, target)
	if err != nil && !errors.Is(err, ErrCompacted) {
		return fmt.Errorf("compaction to revision %d: %w", target, err)
	}
	ages.done(target)
	opts.Meter.forget(target)
	return nil
}

// revisionAges remembers when revisions were first seen: one sample per look, if
// something had been written, no older than the retention but for one.
type revisionAges struct {
	samples   []revisionAge // ascending
	compacted Revision      // the last one that was compacted to
}

type revisionAge struct {
	seen     time.Time
	revision Revision
}

// record notes that revision is current now.
func (a *revisionAges) record(now time.Time, revision Revision) {
	if last := len(a.samples) - 1; last >= 0 && a.samples[last].revision == revision {
		return
	}
	a.samples = append(a.samples, revisionAge{now, revision})
}

// due returns the newest revision that was seen at the time limit or before,
// unless it was the last one compacted to. All revisions below it had been
// replaced by then. Older samples are no longer needed, and dropped.
func (a *revisionAges) due(limit time.Time) (target Revision, ok bool) {
	drop := 0
	for i, sample := range a.samples {
		if sample.seen.After(limit) {
			break
		}
		target, drop = sample.revision, i
	}
	a.samples = slices.Delete(a.samples, 0, drop)
	return target, target > a.compacted
}

// done notes a compaction and drops the samples that are no longer needed.
func (a *revisionAges) done(target Revision) {
	a.compacted = target
	kept := a.samples[:0]
	for _, sample := range a.samples {
		if sample.revision >= target {
			kept = append(kept, sample)
		}
	}
	a.samples = kept
}
