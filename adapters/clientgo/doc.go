// Package clientgo hands informers of Levelwire to code that expects those of
// client-go: a cache.SharedIndexInformer, a cache.Indexer and the listers over
// it. It is a module of its own, so that Levelwire does not depend on
// client-go's tools/cache.
//
//	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
//	controller := theirs.NewController(clientgo.SharedIndexInformer(pods))
//	lister := corelisters.NewPodLister(clientgo.Indexer(pods))
//
// What differs from client-go's own: a slow handler gets fewer, newer states;
// when another object took a name unseen, handlers get a deletion and an
// addition; and the cache cannot be written to.
package clientgo
