package watchcache

import (
	"context"
	"errors"
	"fmt"
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
// passed. It reads the keys from the store, page by page, and the values of those
// that differ.
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
	err := f.pages(ctx, m.prefix, true, func(page storage.Page) (err error) {
		if snapshot.revision == 0 {
			if snapshot, err = m.cache.Exact(ctx, page.Revision); err != nil {
				return err
			}
		}
		for _, d := range compare(m.prefix, snapshot, from, page) {
			if found, err = f.differs(ctx, m, d, page.Revision, found); err != nil {
				return err
			}
		}
		if n := len(page.Items); n > 0 {
			from = page.Items[n-1].Key[len(m.prefix):] + "\x00"
		}
		return nil
	})
	return found, err
}

// suspect is a key at which a cache and its store differ.
type suspect struct {
	key  string           // of the cache
	is   storage.Revision // in the store; 0 if it is not there
	seen storage.Revision // in the cache; 0 if it is not there
}

// compare walks a page of the store and what the cache holds in the same
// range of keys side by side.
func compare(prefix string, snapshot Snapshot, from string, page storage.Page) []suspect {
	var found []suspect
	items := page.Items
	key := func() string { return items[0].Key[len(prefix):] }
	for held := range snapshot.Range("", from) {
		for len(items) > 0 && key() < held.Key {
			found = append(found, suspect{key: key(), is: items[0].Modified})
			items = items[1:]
		}
		switch {
		case len(items) > 0 && key() == held.Key:
			if items[0].Modified != held.Revision {
				found = append(found, suspect{key: held.Key, is: items[0].Modified, seen: held.Revision})
			}
			items = items[1:]
		case len(items) == 0 && page.More:
			return found // of the next page
		default:
			found = append(found, suspect{key: held.Key, seen: held.Revision})
		}
	}
	for ; len(items) > 0; items = items[1:] {
		found = append(found, suspect{key: key(), is: items[0].Modified})
	}
	return found
}

// differs reads what the store holds at revision and appends the difference,
// unless it is a value that nobody can decode, which is known.
func (f *Feed) differs(ctx context.Context, m *member, s suspect, revision storage.Revision, found []difference) ([]difference, error) {
	d := difference{key: s.key, seen: s.seen}
	if s.is == 0 {
		return append(found, d), nil
	}
	item, err := f.store.Get(ctx, m.prefix+s.key, revision)
	if err != nil {
		return nil, fmt.Errorf("read of %s, which differs from the cache: %w", m.prefix+s.key, err)
	}
	if d.object, err = m.cache.Decode(s.key, item.Value, item.Modified); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.skip(item.Key, item.Modified, err)
		return found, nil
	}
	d.object.created, d.object.steady = item.Created, item.Modified
	return append(found, d), nil
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
