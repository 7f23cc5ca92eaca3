// Package memory keeps a storage.Store in the process: for tests, and for a
// server whose state need not outlive it.
//
// State is a persistent B-tree, so a read takes the root it finds and needs no
// lock, and every write replaces the root. History is one log of events; a
// watch is a cursor into it. Every checkpointInterval revisions the log also
// keeps the root, from which the state at any retained revision is rebuilt by
// replaying a few events. Compaction and the limits of Options drop the log's
// oldest segments; nothing else grows with time.
//
// Start reading at Open, then write.go (one write), history.go (the log),
// stream.go (the cursor) and expiry.go.
package memory
