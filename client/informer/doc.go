// Package informer keeps a cache of the objects of a resource and tells
// handlers what changes. One SharedInformer serves any number of handlers
// from one watch and one Indexer; a Factory holds one SharedInformer for each
// resource that a program looks at.
//
//	reflector -> DeltaFIFO -> informer loop -> Indexer
//	                                        -> one bounded queue per handler -> handler
//
// Two goroutines run per informer (reflector and loop), and one per handler
// while it has something to be told. None polls.
//
// Start with [NewFactory] and [For]; handler.go says what handlers may rely
// on, and queue.go how a slow one is kept from costing the others anything.
package informer
