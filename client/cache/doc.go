// Package cache holds the two halves of a client's view of the server: the
// [DeltaFIFO], which collects the changes of each object until the consumer
// pops it, and the [Indexer], which holds the newest state of every object and
// finds objects by key and by index.
//
// Objects are shared, never copied. A caller that gets an object from this
// package must treat it and everything reachable from it as read-only. A caller
// that puts one in must not change it afterwards.
//
// The package knows nothing of networks. client/reflector fills a DeltaFIFO,
// client/informer moves its deltas into an Indexer and calls handlers.
package cache
