// Package epoch keeps the versions that clients know apart from those of a store that
// was restored from a backup, or replaced by another one.
//
// Clients resume by revision. A store that has gone back uses the revisions that it
// lost once more, for other states, and nothing in a request tells the two apart. So a
// store has an epoch: an identity under Key, and an offset that is added to all
// revisions of the store before a client sees them. A server remembers, in a file of
// its data directory, the epoch and how far its revisions had come. If the store has
// fallen behind that, or is another one, a new epoch begins, with an offset that puts
// all revisions above those that clients may have seen: these count as compacted then.
//
// The offset is 0 until that happens, and costs nothing.
package epoch
