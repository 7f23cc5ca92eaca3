// Package tombstone keeps deletions that a cache's log does not hold any more,
// so that a client that resumes from before the log still gets them: in memory,
// as a Set of each cache, and in the store, as batches that outlive compactions
// and restarts.
//
// A server derives deletions from the store's history for as long as the store
// has it. Before a server compacts the store, its Writer writes the deletions that
// the compaction will remove, in batches under Prefix: so they survive restarts
// and compactions, every server of the store reads the same, and ordinary
// writes cost nothing. Each batch says which revisions it covers. If another
// program compacts the store, there is a gap between two batches, and only the
// batches after the last gap count.
//
// Reading order: set.go (memory), codec.go and batches.go (the format in the
// store), writer.go (before a compaction), reader.go (after a start).
package tombstone
