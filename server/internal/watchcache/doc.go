// Package watchcache holds the current state and the recent history of each
// stored resource and serves every read and watch from them, so that the
// store has one watch and one initial list whatever the number of clients.
//
// The way of an event: the feed (package feed) reads the store's stream and hands
// each change to the Cache of its resource; the cache appends the event to its
// log, publishes a new state and wakes the watchers that sleep in a bucket whose
// interest the event touches. Each Watcher is a cursor in the log and reads at its
// own speed. A slow watcher costs the others nothing. One whose next event has
// been evicted goes on with coalesced history, a summary of the latest change of
// each object and the tombstones of deleted ones; only if the tombstones do not
// reach back far enough does it expire.
//
// Reading order: packages state (objects, snapshots, selections) and eventlog;
// then cache.go, fill.go, apply.go and discrepancy.go (how events enter);
// interestindex.go, bucket.go, attach.go, watcher.go and event.go (which watchers
// get them); resume.go, coalesced.go, summary.go and earlierhistory.go (where a
// watch resumes); exact.go and progress.go (reads); compression.go (which objects are
// held compressed). Packages tombstone, backfill and feed are what keeps deletions,
// what reads history from before the start, and what drives all caches from a store.
package watchcache
