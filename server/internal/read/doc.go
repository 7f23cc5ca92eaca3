// Package read decides what a read means: which state of a collection a get, a
// list, a page of a list, a watch or a difference shows for the resourceVersion
// and the options that a client sent. It stands beside package registry, which
// decides about writes, and knows nothing of HTTP: it returns objects, cursors
// and revisions, and package apiserver writes them out.
//
// A read is answered from the watch cache of its resource. The store is asked
// for two things only: how far it has come, for a read that must show the latest
// write, and what a collection held at a revision that the cache has evicted.
// Errors that clients cause, and those that ask them to come back, are Status
// errors of apimachinery; errors of the store and of the context are passed on.
//
// Reading order: reader.go (what a read needs), options.go, validate.go and
// parseversion.go (what a request may say), freshness.go (which state that
// means), then a file for each verb: get.go; list.go with continue.go (pages) and
// evicted.go (revisions that the cache has evicted); watch.go with bookmark.go
// and catchup.go (revisions that the cache has not reached yet); difference.go.
// errors.go translates the cache's errors.
package read
