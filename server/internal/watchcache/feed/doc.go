// Package feed keeps watch caches as their store is, over one list of each
// resource and one watch of the whole store.
//
// Reading order: feed.go (the stream), member.go (one cache), fill.go (lists),
// check.go (comparing with the store), order.go and writes.go (streams that break
// their promises), undecodable.go (values that cannot be decoded), backfill.go
// (history from before the start), compaction.go (what must happen before the
// store is compacted).
package feed
