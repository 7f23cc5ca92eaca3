package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// runChecks compares all caches with the store at every CheckInterval. A check
// that fails is only logged.
func (f *Feed) runChecks(ctx context.Context) error {
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

// Check compares the keys and revisions that each filled cache holds with the
// store's, both at the same revision, and returns how many differ. The feed
// corrects discrepancies as events along with the next changes of the store,
// because only those bring revisions that watchers have not passed yet. Check reads
// the keys from the store, page by page, and the values of those that differ.
func (f *Feed) Check(ctx context.Context) (int, error) {
	reached := f.progress.Reached() // before the store is asked: the stream goes on meanwhile
	now, err := f.store.Current(ctx)
	if err != nil {
		return 0, err
	}
	if now < reached {
		f.unplace() // the store was restored from the past: start over
		return 0, nil
	}
	total := 0
	var failed []error
	for _, m := range f.inStep() {
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

// A comparison after a resumption reads the keys of everything in the store. A stream
// that breaks again and again, as one through a bad network does, must not keep store and
// server busy with that: recheckInterval after a comparison at the earliest, and after
// recheckFactor times as long as it took, the next one begins.
const (
	recheckInterval = 5 * time.Second
	recheckFactor   = 9
)

// runRechecks compares all caches with the store whenever the stream has been
// resumed: what happened while there was none is what engines have left out most
// often. Resumptions that follow each other quickly are followed by one comparison.
func (f *Feed) runRechecks(ctx context.Context) error {
	for {
		select {
		case <-f.recheck:
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		f.recheckAll(ctx)
		if sleep(ctx, max(recheckInterval, recheckFactor*time.Since(began))) != nil {
			return nil
		}
	}
}

// recheckAll compares all caches with the store. Those that differ are listed again at
// once.
func (f *Feed) recheckAll(ctx context.Context) {
	for _, m := range f.inStep() {
		found, err := f.check(ctx, m)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.opts.Logger.Warn("comparing a cache with the store failed", "resource", m.cache.Resource().GroupResource(), "error", err)
		case len(found) > 0:
			f.mu.Lock()
			if !m.filling && !m.removed {
				f.opts.Logger.Error("the store's change stream left out changes: listing again",
					"resource", m.cache.Resource().GroupResource(), "differences", len(found), "first", found[0].Key)
				f.listAgain(m)
			}
			f.mu.Unlock()
		}
	}
}

// requestRecheck wakes runRechecks.
func (f *Feed) requestRecheck() {
	select {
	case f.recheck <- struct{}{}:
	default:
	}
}

// inStep returns the members that are not being filled.
func (f *Feed) inStep() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.order), func(m *member) bool { return m.filling || !m.cache.IsReady() })
}

// report hands discrepancies to the goroutine that applies changes.
func (f *Feed) report(m *member, found []watchcache.Discrepancy) {
	f.checks.Add(1)
	if len(found) == 0 {
		return
	}
	f.discrepancies.Add(int64(len(found)))
	f.opts.Logger.Error("a cache differs from the store and is being repaired",
		"resource", m.cache.Resource().GroupResource(), "differences", len(found), "first", found[0].Key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !m.filling { // a fill finds the same discrepancies
		m.repairs = found
	}
}

// check compares one cache.
func (f *Feed) check(ctx context.Context, m *member) ([]watchcache.Discrepancy, error) {
	var found []watchcache.Discrepancy
	var snapshot watchcache.Snapshot
	from := ""
	err := f.pages(ctx, m.prefix, storage.ListOptions{KeysOnly: true}, func(page storage.Page) (err error) {
		if snapshot.Revision() == 0 {
			if snapshot, err = m.cache.Exact(ctx, page.Revision); err != nil {
				return err
			}
		}
		for _, d := range compareKeys(m.prefix, snapshot, from, page) {
			if found, err = f.confirm(ctx, m, d, page.Revision, found); err != nil {
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
	key    string           // of the cache
	stored storage.Revision // in the store; 0 if the key does not exist there
	held   storage.Revision // in the cache; 0 if the key does not exist there
}

// compareKeys merges a page of the store's keys with what the cache holds in the
// same range.
func compareKeys(prefix string, snapshot watchcache.Snapshot, from string, page storage.Page) []suspect {
	var found []suspect
	items := page.Items
	key := func() string { return items[0].Key[len(prefix):] }
	for held := range snapshot.Range("", from) {
		for len(items) > 0 && key() < held.Key {
			found = append(found, suspect{key: key(), stored: items[0].Modified})
			items = items[1:]
		}
		switch {
		case len(items) > 0 && key() == held.Key:
			if items[0].Modified != held.Revision {
				found = append(found, suspect{key: held.Key, stored: items[0].Modified, held: held.Revision})
			}
			items = items[1:]
		case len(items) == 0 && page.More:
			return found // of the next page
		default:
			found = append(found, suspect{key: held.Key, held: held.Revision})
		}
	}
	for ; len(items) > 0; items = items[1:] {
		found = append(found, suspect{key: key(), stored: items[0].Modified})
	}
	return found
}

// confirm reads a suspect's value from the store at revision and appends the
// discrepancy, unless the value cannot be decoded: then the cache rightly differs.
func (f *Feed) confirm(ctx context.Context, m *member, s suspect, revision storage.Revision, found []watchcache.Discrepancy) ([]watchcache.Discrepancy, error) {
	d := watchcache.Discrepancy{Key: s.key, Held: s.held}
	if s.stored == 0 {
		return append(found, d), nil
	}
	item, err := f.store.Get(ctx, m.prefix+s.key, revision)
	if err != nil {
		return nil, fmt.Errorf("read of %s, which differs from the cache: %w", m.prefix+s.key, err)
	}
	if d.Object, err = m.cache.Decode(s.key, item.Value, item.Modified); err != nil {
		f.undecodable.skip(item.Key, item.Modified, err)
		return found, nil
	}
	d.Object.CreatedRevision, d.Object.SelectorsStableSince = item.Created, item.Modified
	return append(found, d), nil
}
