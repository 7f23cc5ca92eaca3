package watchcache

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// checkRegularly compares all caches with the store from time to time. A
// check that fails says nothing: the next one comes.
func (f *Feed) checkRegularly(ctx context.Context) error {
	ticker := time.NewTicker(f.opts.CheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if _, err := f.Check(ctx); err != nil && ctx.Err() == nil {
				f.opts.Logger.Warn("comparing the caches with the store failed: trying again at the next interval", "error", err)
			}
		}
	}
}

// Check compares the names and revisions that each filled cache holds with
// the store's, both at the same revision, and returns how many differ. The
// feed mends differences as events along with the next changes of the store,
// because only then is there a revision that watchers have not been told has
// passed. It reads everything from the store, page by page.
func (f *Feed) Check(ctx context.Context) (int, error) {
	now, err := f.store.Current(ctx)
	if err != nil {
		return 0, err
	}
	if now < f.progress.Reached() {
		f.unplace() // the store was restored from the past: start over
		return 0, nil
	}
	f.mu.Lock()
	members := slices.Clone(f.order)
	f.mu.Unlock()
	total := 0
	var failed []error
	for _, m := range members {
		if !m.cache.isReady() {
			continue
		}
		found, err := f.check(ctx, m)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		total += len(found)
		f.report(m, found)
	}
	return total, errors.Join(failed...)
}

// report hands differences to the goroutine that applies changes.
func (f *Feed) report(m *member, found []difference) {
	f.checks.Add(1)
	if len(found) == 0 {
		return
	}
	f.differences.Add(int64(len(found)))
	f.opts.Logger.Error("a cache differs from the store and is being repaired",
		"resource", m.cache.res.GroupResource(), "differences", len(found), "first", found[0].key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !m.filling { // a fill finds the same
		m.repairs = found
	}
}

// check compares one cache.
func (f *Feed) check(ctx context.Context, m *member) ([]difference, error) {
	var found []difference
	var snapshot Snapshot
	from := ""
	err := f.pages(ctx, m.prefix, func(page storage.Page) (err error) {
		if snapshot.revision == 0 {
			if snapshot, err = m.cache.Exact(ctx, page.Revision); err != nil {
				return err
			}
		}
		found = f.compare(m, snapshot, from, page, found)
		if n := len(page.Items); n > 0 {
			from = page.Items[n-1].Key[len(m.prefix):] + "\x00"
		}
		return nil
	})
	return found, err
}

// compare walks a page of the store and what the cache holds in the same
// range of keys side by side.
func (f *Feed) compare(m *member, snapshot Snapshot, from string, page storage.Page, found []difference) []difference {
	items := page.Items
	for held := range snapshot.Range("", from) {
		for len(items) > 0 && items[0].Key[len(m.prefix):] < held.Key {
			found = f.differs(m, &items[0], 0, found)
			items = items[1:]
		}
		switch {
		case len(items) > 0 && items[0].Key[len(m.prefix):] == held.Key:
			if items[0].Modified != held.Revision {
				found = f.differs(m, &items[0], held.Revision, found)
			}
			items = items[1:]
		case len(items) == 0 && page.More:
			return found // of the next page
		default:
			found = append(found, difference{key: held.Key, seen: held.Revision})
		}
	}
	for i := range items {
		found = f.differs(m, &items[i], 0, found)
	}
	return found
}

// differs appends the difference, unless it is a value that nobody can
// decode, which is known.
func (f *Feed) differs(m *member, item *storage.KeyValue, seen storage.Revision, found []difference) []difference {
	key := item.Key[len(m.prefix):]
	o, err := m.cache.Decode(key, item.Value, item.Modified)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.skip(item.Key, item.Modified, err)
		return found
	}
	return append(found, difference{key, o, seen})
}

// repair adds the member's waiting differences to the changes of a batch
// that ends at through, as far as there are revisions for them.
func (f *Feed) repair(m *member, through storage.Revision) {
	changed := make(map[string]bool, len(m.changes))
	for i := range m.changes {
		changed[m.changes[i].Key] = true
	}
	repairs := slices.DeleteFunc(m.repairs, func(d difference) bool { return changed[d.key] || m.cache.stale(d) })
	changes, rest := schedule(m.changes, repairs, m.cache.reached(), through)
	m.cache.counters.repaired.Add(int64(len(repairs) - len(rest)))
	m.changes, m.repairs = changes, rest
}
