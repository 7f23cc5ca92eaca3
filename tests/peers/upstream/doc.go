// Package upstream starts, in this process, an API server made of the
// published upstream libraries: the generic registry of k8s.io/apiserver, its
// etcd3 storage and watch cache, over TLS and HTTP/2, on an etcd of its own. It
// is the peer that Levelwire's library is tested against and that both are
// measured against.
//
// It serves Pods, ConfigMaps, Namespaces, ReplicaSets and Leases without
// admission, defaulting and validation, and every client may do everything:
// whatever differs from a real kube-apiserver makes it faster and more lenient,
// never slower or stricter.
//
// Start with Start; StartEtcd alone is the store without the server.
package upstream
