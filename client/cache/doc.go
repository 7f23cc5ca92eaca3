// Package cache holds the two halves of a client's view of the server: the
// [DeltaFIFO], which collects what has changed per object until somebody has
// time to look, and the [Indexer], which holds the newest state of every
// object and finds objects by key and by index.
//
// Objects are shared, never copied: whoever gets an object from this package
// must treat it and everything reachable from it as read-only, and whoever
// puts one in must not change it afterwards.
//
// The package knows nothing of networks. client/reflector fills a DeltaFIFO,
// client/informer moves its deltas into an Indexer and tells handlers.
package cache
