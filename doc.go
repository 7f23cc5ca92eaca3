// Package levelwire is the root of Kubernetes' list-watch machinery as one
// small server and one library. It holds no code; this is the order in which
// to read what is below it.
//
// What stores:
//
//   - storage: the contract with the engine that keeps objects; storage/memory
//     and storage/etcd implement it, storage/storagetest is their suite.
//
// What serves, below server/internal, from the bottom up:
//
//   - resource: what a served kind is, and its codec; resource/builtin has a
//     package for each API group of Kubernetes.
//   - watchcache: state, log and cursors of each resource, with packages for
//     state, eventlog, tombstone, backfill and feed. The heart.
//   - read: what get, list, watch, pages and differences mean, without HTTP.
//   - registry: what create, update, patch, apply and delete mean, without HTTP;
//     registry/fieldmanager is field ownership and server-side apply.
//   - auth, serviceaccount, admission: users, tokens, and the plugins that may
//     change or refuse a write.
//   - customresource: what CustomResourceDefinitions define.
//   - openapi: the published schemas and paths.
//   - apiserver: HTTP, with packages for request, authentication, authorization,
//     encoding, discovery and watchstream; h2 is the HTTP/2 server below it.
//   - server: all of these assembled, for levelwire serve and for Go programs.
//
// The library, a module of its own:
//
//   - client: typed and dynamic clients.
//   - client/kubeconfig: a client by the loading rules of kubectl.
//   - client/scheme: which kind and resource a Go type is.
//   - client/discovery: what a server serves, and kinds to resources.
//   - client/subresource, client/objectmeta, client/conditions, client/wait and
//     client/patch: scale and eviction, finalizers and owners, conditions, waiting for
//     a state, patches.
//   - client/cache: DeltaFIFO and Indexer.
//   - client/reflector: lists, watches, resumes.
//   - client/informer: shared informers, listers and their factory;
//     client/informer/ondemand reads whole objects beside an informer of metadata,
//     client/informer/informertest is what informers promise, as a suite.
//   - client/cached: reads from informers what these have, the rest from the server.
//   - client/workqueue, client/controller, client/leader and client/events: what
//     controllers need besides.
//   - client/webhook: admission and conversion webhooks.
//   - client/debug: the insides of informers, for people
//   - client/metrics, client/tracing and client/health: Prometheus, OpenTelemetry,
//     health checks.
//   - client/podstream: logs, exec, attach and port forwarding.
//
// Who uses it: components/controllermanager, scheduler, kubelet and proxy are
// ordinary users of the library. Command cmd/levelwire runs any of them, or all
// of them in one process.
//
// Tests: conformance tries what list and watch promise on any API server, over
// raw HTTP. Package levelwiretest runs a server in the process of a test.
//
// Follow one event: registry.Registry.Create writes it, storage.Stream delivers
// it, feed.Feed applies it, watchcache.Watcher is the cursor that reads it,
// watchstream.Stream writes it to a connection, reflector.Reflector receives it,
// cache.DeltaFIFO holds it, and informer.SharedInformer notifies a Handler.
// ARCHITECTURE.md draws this journey.
package levelwire
