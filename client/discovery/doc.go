// Package discovery asks a server which resources it serves, and maps kinds and names
// to them: what RESTMapper and the cached discovery client are in client-go.
//
// [Fetch] asks once. A [Mapper] keeps the answer and asks again when it may be old: it
// finds the resource of a kind, in the version that the server prefers, or that of a
// name as kubectl takes them ("deploy", "pods.metrics.k8s.io"). Kinds with a Go type
// need neither: client.For looks them up in a scheme.
//
// Reading order: resource.go, fetch.go, mapper.go, find.go, near.go; version.go.
package discovery
