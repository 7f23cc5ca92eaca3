// Package storagetest is the contract suite of package storage: every
// implementation runs the same tests and the same benchmarks, so that a caller
// may rely on the contract instead of on an engine.
//
//	func TestContract(t *testing.T) {
//		storagetest.Run(t, func(t *testing.T) storage.Store { ... })
//	}
//
// One file holds one idea: writes.go, conflicts.go, list.go, watch.go,
// compaction.go, lifetime.go, expiry.go, and history.go, which records what
// concurrent writers and readers saw and then checks named guarantees.
package storagetest
