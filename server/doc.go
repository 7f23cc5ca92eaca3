// Package server assembles a running API server out of its parts: a store,
// a watch cache for each stored resource with the feed that fills them, the
// registry, the HTTP handlers, certificates and a socket. It is what
// `levelwire serve` runs and what a Go program embeds.
//
// Read server.go first: Run opens the store, serves, and drains.
package server
