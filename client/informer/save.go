package informer

import (
	"context"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client/internal/diskcache"
)

// snapshot is a state of the cache that a file can hold: all objects, and
// the version that they show exactly.
type snapshot[T any] struct {
	objects []T
	version string
	asOf    time.Time
	events  int64 // of the informer: equal numbers are equal objects
}

// snapshot returns the state of this moment, unless changes are queued that it
// does not show: a version between two states could not be resumed from
// without going back.
func (i *SharedInformer[T]) snapshot() (s snapshot[T], ok bool) {
	asOf := i.Freshness().AsOf
	i.mu.Lock()
	defer i.mu.Unlock()
	version, settled := i.fifo.Settled()
	if asOf.IsZero() {
		asOf = time.Now() // a source that is not asked by the reflector alone
	}
	if !settled || version == "" || version == "0" || !i.HasSynced() {
		return s, false
	}
	return snapshot[T]{objects: i.indexer.List(), version: version, asOf: asOf, events: i.events.Load()}, true
}

// keepSaved saves from time to time, in the background, until ctx ends.
func (i *SharedInformer[T]) keepSaved(ctx context.Context, background *sync.WaitGroup) {
	if i.disk == nil {
		return
	}
	i.disk.events = i.events.Load()
	background.Go(func() {
		select {
		case <-i.synced:
		case <-ctx.Done():
			return
		}
		var next <-chan time.Time
		if i.disk.opts.Interval > 0 {
			ticker := time.NewTicker(i.disk.opts.Interval)
			defer ticker.Stop()
			next = ticker.C
		}
		for i.saveSettled(ctx) {
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
		}
	})
}

// saveSettled waits for a state that can be saved, and saves it. It returns
// false when ctx has ended.
func (i *SharedInformer[T]) saveSettled(ctx context.Context) bool {
	for {
		if s, ok := i.snapshot(); ok {
			i.disk.save(ctx, s)
			return ctx.Err() == nil
		}
		select {
		case <-i.disk.idle:
		case <-ctx.Done():
			return false
		}
	}
}

// lastSave bounds what the last save may wait for the server's identity, if
// that is not known by then.
const lastSave = 2 * time.Second

// saveLast is called when reflector and loop have ended: what is queued is
// applied, so that the file holds all that was received.
func (i *SharedInformer[T]) saveLast(ctx context.Context) {
	if i.disk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	for i.fifo.Len() > 0 {
		if i.applyNext(ctx) != nil {
			return
		}
	}
	if s, ok := i.snapshot(); ok {
		i.disk.save(ctx, s)
	}
}

// save writes a state, or notes its version if nothing else has changed.
func (d *disk[T]) save(ctx context.Context, s snapshot[T]) {
	err := d.saveChanged(ctx, s)
	if err != nil {
		d.written = nil
		d.count(func(c *DiskStats) { c.Failures++ })
		d.log.Warn("the cache file could not be written", "path", d.path, "error", err)
	}
}

func (d *disk[T]) saveChanged(ctx context.Context, s snapshot[T]) error {
	if d.written != nil && d.events == s.events {
		if d.version == s.version {
			return nil
		}
		if err := d.written.Advance(s.version, s.asOf); err == nil {
			d.saved(s, func(c *DiskStats) { c.Advances++ })
			return nil
		}
	}
	if _, err := d.identify(ctx, lastSave); err != nil {
		return err
	}
	written, err := d.write(s)
	if err != nil {
		return err
	}
	d.written = &written
	d.saved(s, func(c *DiskStats) { c.Saves++ })
	return nil
}

func (d *disk[T]) saved(s snapshot[T], count func(*DiskStats)) {
	d.version, d.events = s.version, s.events
	d.count(func(c *DiskStats) {
		count(c)
		c.Saved, c.Bytes = s.asOf, d.written.Bytes
	})
	d.log.Debug("saved", "objects", len(s.objects), "resourceVersion", s.version)
}

func (d *disk[T]) write(s snapshot[T]) (diskcache.Written, error) {
	w, err := diskcache.Create(d.path, diskcache.Header{
		Identity: d.identity, Cluster: d.cluster, Version: s.version, Saved: s.asOf,
	}, diskcache.Limits(d.opts.Limits))
	if err != nil {
		return diskcache.Written{}, err
	}
	defer w.Abort()
	for _, obj := range s.objects {
		if err := w.Append(func(dst []byte) ([]byte, error) { return d.codec.append(dst, obj) }); err != nil {
			return diskcache.Written{}, err
		}
	}
	return w.Commit()
}
