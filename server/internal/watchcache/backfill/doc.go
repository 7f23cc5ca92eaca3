// Package backfill reads what happened before a cache was filled from the
// store's own history, so that after a restart, or on another server, a client
// resumes from any revision that the store still has.
//
// A Collector takes the events of one cache as they are stored, keeps what fits
// into the cache's limits, and then decodes only that, as an EarlierHistory. The
// cache prepends it to its log.
package backfill
