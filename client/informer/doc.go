// Package informer keeps a cache of the objects of a resource and calls
// handlers for each change. One SharedInformer serves any number of handlers
// from one watch and one Indexer; a Factory holds one SharedInformer for each
// resource that a program looks at.
//
// Objects are shared: handlers and listers get the cache's own. They are interned, too:
// equal parts of different objects, labels or volumes for instance, are kept once. Code that
// writes to one changes them all, and also objects that are decoded later: they get
// the changed part in place of what the server has sent. No later event mends that
// as long as the watch lasts. Call DeepCopy before a change, or read with
// [Lister.Copies]; [Options].MutationDetection, or the build tag
// levelwire_detect_mutations, names the code that does not. With
// [Options].NoInterning a write to an object changes only that one, until its next
// event.
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
