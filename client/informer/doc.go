// Package informer keeps a cache of the objects of a resource and calls
// handlers for each change. One SharedInformer serves any number of handlers
// from one watch and one Indexer; a Factory holds one SharedInformer for each
// resource that a program looks at.
//
//	reflector -> DeltaFIFO -> informer loop -> Indexer
//	                                        -> one bounded queue per handler -> handler
//
// Two goroutines run per informer (reflector and loop), and one per handler
// while notifications wait for it. None polls.
//
// Start with [NewFactory] and [For]; handler.go says what handlers may rely on,
// and queue.go how a slow one costs the others nothing.
package informer
