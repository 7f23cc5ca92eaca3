// Package relay makes a server whose store is another server: the upstream. It feeds the
// same watch caches that a store feeds (package watchcache), from a list and a watch of
// each resource, at the upstream's resourceVersions, so that package read answers as ever.
// Everything that a cache cannot answer is passed on.
//
// Reading order: relay.go (what is cached, and since when), kinds.go (what the upstream
// serves), object.go and source.go (one resource: its cache and its reflector), past.go (the first
// fill, from the version that clients have), current.go
// and progress.go (consistent reads: which version is current, and how the cache gets
// there), aging.go (lists at one version that has become old), contact.go (how old the caches may be), passon.go (requests that are passed on),
// reviews.go (which users there are, and what they may do).
package relay
