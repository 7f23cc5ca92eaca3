// Package levelwire is the root of Kubernetes' list-watch machinery as one
// small server and one library. It holds no code; this is the order in which
// to read what is below it.
//
// The server, from the bottom up:
//
//   - storage: the contract with the engine that keeps objects; storage/memory
//     and storage/etcd implement it, storage/storagetest is their suite.
//   - resource: what a served kind is; resource/builtin is the table of those
//     that Kubernetes ships, resource/columns the tables of kubectl get.
//   - watchcache: state and recent history of each resource. The heart.
//   - auth: who sends a request and what they may do, as values and interfaces.
//   - registry: the verbs on objects, without HTTP; registry/fieldmanager is
//     who owns which field, and the merge of server-side apply.
//   - serviceaccount, admission: who has a say in what is written; tokens.
//   - customresource: what CustomResourceDefinitions define.
//   - openapi: what is served, as schemas and paths.
//   - apiserver: the HTTP handlers.
//   - server: all of these assembled into something that runs.
//
// The client library:
//
//   - client: typed and dynamic clients.
//   - client/cache: DeltaFIFO and Indexer.
//   - client/diskcache: the file an informer resumes from after a restart.
//   - client/reflector: lists, watches, resumes.
//   - client/informer: shared informers, listers and their factory.
//   - client/workqueue, client/controller, client/leader and client/events: what
//     controllers need besides.
//   - client/metrics: all of them for Prometheus.
//
// client/informer/informertest is what informers promise, as a suite, and soak
// has them live under faults.
//
// The checks: conformance tries what list and watch promise on any API server,
// over raw HTTP; levelwire verify runs it.
//
// The components, ordinary users of that library: controller and the packages
// below it, scheduler, kubelet, proxy. Command cmd/levelwire runs any of them,
// or all of them in one process.
//
// Package levelwiretest runs a server in the process of a test.
//
// Follow one event: registry.Registry.Create writes it, storage.Stream
// delivers it, feed.Feed applies it, watchcache.Watcher is the cursor
// that reads it, apiserver writes it to a socket, reflector.Reflector decodes
// it, cache.DeltaFIFO holds it, and informer.SharedInformer tells a
// Handler. ARCHITECTURE.md draws this journey.
package levelwire
