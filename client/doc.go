// Package client talks to an API server of Kubernetes or Levelwire over HTTP:
// typed by generics ([For]), dynamic ([Dynamic]) or reduced to metadata
// ([Metadata]).
//
// Start with [New] and [For]; then [Resource.List] and [Resource.Watch] are
// what everything else here serves. Both decode while they read: a list is
// never held as bytes and as objects at once, and a watch decodes each event
// once, into the type that the caller asked for.
//
// Requests end when their context does; there is no other timeout, and no
// limit on the rate of requests: a server under load answers 429 with
// Retry-After, which is honoured (see [RetryOptions]).
//
// A connection that went silent without being closed is found by HTTP/2 pings
// or, for HTTP/1.1, by TCP keep-alives; see [Options.ReadIdleTimeout].
//
// The encodings, JSON and protobuf, are in internal/codec: how objects, lists and
// events are decoded, and what decoded objects share.
//
// The packages below build on it, in reading order:
//
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
