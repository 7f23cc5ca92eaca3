// Package storage declares what Levelwire requires of the engine that keeps its
// objects: a flat space of keys under one global revision, guarded writes,
// consistent reads at a revision, and an ordered stream of changes.
//
// The contract is deliberately that of etcd's MVCC store, because Kubernetes'
// resourceVersion is etcd's revision. storage/memory and storage/etcd
// implement it; storage/storagetest is the suite that every implementation
// passes.
//
// store.go is the contract, errors.go its errors; compaction.go is the loop that
// removes old history, for any engine; meter.go counts the bytes of history for it.
package storage
