// Package client talks to an API server of Kubernetes or Levelwire over HTTP:
// typed by generics ([For]), dynamic ([Dynamic]) or reduced to metadata
// ([Metadata]).
//
// Start with [Load], [FromKubeconfig] or [New], and [For]; then [Resource.List] and [Resource.Watch] are
// what everything else here serves. Both decode while they read: a list is
// never held as bytes and as objects at once, and a watch decodes each event
// once, into the type that the caller asked for.
//
// Requests end when their context does; there is no other timeout unless the
// rest.Config has one (see [New]), and no limit on the rate of requests unless
// [Options.RateLimiter] is set: a server under load answers 429 with Retry-After, which
// is honoured (see [RetryOptions]).
//
// Rotated credentials are used without a restart. Files of client certificates and
// CAs are read again at most a minute after they changed, for each new connection
// and after a 401; tokens are read again every minute and after a 401; an exec plugin
// is called when its credentials expire and after a 401. A request that was refused
// with 401 is repeated once if the credentials may be others by then. After a
// rotation new requests go to new connections. Running watches stay on their old
// connections until they end by themselves, within minutes usually, so a rotation
// never makes all watches start again at once (client-go closes all connections).
// Files that cannot be read, or do not fit together yet, leave the old credentials in
// use; see [Stats] and [Options.Logger].
//
// A connection that went silent without being closed is found by HTTP/2 pings
// or, for HTTP/1.1, by TCP keep-alives; see [Options.ReadIdleTimeout].
//
// How connections are made and replaced is in internal/transport. The encodings, JSON and protobuf, are in internal/codec: how objects, lists and
// events are decoded, and what decoded objects share.
//
// The packages below build on it, in reading order:
//
//   - kubeconfig has the loading rules of kubectl, for [Load].
//   - scheme says which kind and resource a Go type is; custom types are registered
//     in it once.
//   - discovery asks what a server serves, and maps kinds and names to resources.
//   - subresource has scale, eviction, binding, token as typed calls.
//   - objectmeta changes finalizers and owner references.
//   - conditions sets and reads the conditions in a status.
//   - wait waits until an object is as a function wants it.
//   - patch makes patches from two states of an object, or from operations.
//   - cache keeps objects and what happened to them: Indexer and DeltaFIFO. It
//     knows nothing of the network.
//   - reflector keeps a store in step with a server: list once, then watch and
//     resume.
//   - informer puts the three together: shared informers, handlers, listers
//     and the factory that most programs begin with.
//   - informer/ondemand reads whole objects beside an informer of metadata.
//   - informer/informertest is what informers promise, as a suite.
//   - cached reads from informers what these have, and the rest from the server.
//   - workqueue is what a controller's handlers feed and its workers drain.
//   - controller is the frame of a controller around both: say what is watched,
//     reconcile keys.
//   - leader lets one of several processes act, by a Lease.
//   - metrics exports to Prometheus what the others count.
//   - debug publishes the insides of informers, as JSON.
//   - tracing makes OpenTelemetry spans of changes, calls and requests.
//   - webhook serves admission and conversion webhooks.
//   - podstream streams to and from containers: logs, exec, attach, port forwarding.
//   - events reports what a component did, for kubectl describe to show.
//   - health serves named checks as /livez, /healthz and /readyz.
package client
