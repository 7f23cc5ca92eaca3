// Package clientgo hands informers of Levelwire to code that expects those of
// client-go: a cache.SharedIndexInformer, a cache.Indexer and the listers over
// it. It is a module of its own, so that Levelwire does not depend on
// client-go's tools/cache.
//
//	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
//	controller := theirs.NewController(clientgo.SharedIndexInformer(pods))
//	lister := corelisters.NewPodLister(clientgo.Indexer(pods))
//
// What differs from client-go's own: handlers are told of a slow one's backlog
// in fewer, newer states; a name that another object took unseen is an end and
// a beginning; and the cache cannot be written to.
package clientgo
