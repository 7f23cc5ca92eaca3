// Package registry is the verbs on objects: create, update, patch, delete and
// the subresources, with everything Kubernetes promises about them, and
// without a word of HTTP.
//
// A write takes one path. registry.go says what is served and what a verb
// answers; state.go reads the current state, from the cache if it can;
// guard.go is the loop in which a write is decided on a state, guarded by that
// state's revision, and decided anew if another write came first. create.go,
// update.go, patch.go, delete.go and collection.go are the decisions, prepare.go
// and parts.go what clients may not decide. admission.go is where others have a
// say; namespaces.go and service.go, with serviceip.go, nodeport.go and
// repair.go, are those who do. scale.go, binding.go, eviction.go and
// subresource.go are the subresources, bootstrap.go the objects that every
// cluster has.
//
// Nothing half written is ever visible: an object changes in one write of the
// store, and whatever had to be claimed for it (an address, a port) is claimed
// before and given back if the write is refused.
package registry
