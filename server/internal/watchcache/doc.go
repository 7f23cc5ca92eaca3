// Package watchcache holds the current state and the recent history of each
// stored resource and serves every read and watch from them, so that the
// store sees one watch and one initial list whatever the number of clients.
//
// One event's way through it: the Feed reads the store's stream and hands
// each change to the Cache of its resource; the cache decodes the attributes
// that selectors look at, appends the event to the history log, makes a new
// snapshot root and wakes the watchers that sleep on an interest the event
// touches. Each Watcher is a cursor in the log and reads at its own speed. A
// slow one lags and costs the others nothing; it is lost only when the log no
// longer holds what it has not read.
//
// Reading order: object.go and event.go (what is kept), log.go (history),
// selection.go, interest.go and bucket.go (who is woken), watcher.go and
// transition.go (what a watcher sees), cache.go, snapshot.go and apply.go
// (state), exact.go (the past), progress.go (freshness), feed.go, fill.go,
// difference.go and check.go (how the store drives it all).
package watchcache
