// Package client holds no code; it names the packages below it in reading
// order.
//
//   - rest talks to an API server: typed, dynamic or metadata-only lists,
//     watches and writes.
//   - cache keeps objects and what happened to them: Indexer and DeltaFIFO. It
//     knows nothing of the network.
//   - reflector keeps a store in step with a server: list once, then watch and
//     resume.
//   - informer puts the three together: shared informers, handlers, listers
//     and the factory that most programs begin with.
//   - diskcache is the file in which an informer may keep its objects.
//   - workqueue is what a controller's handlers feed and its workers drain.
//   - controller is the frame of a controller around both: say what is watched,
//     reconcile keys.
//   - leader lets one of several processes act, by a Lease.
//   - metrics shows to Prometheus what informers and queues count.
//   - events reports what a component did, for kubectl describe to show.
package client
