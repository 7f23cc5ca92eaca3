// Package scheduler binds pods to nodes. It is an ordinary user of
// client/informer: it keeps a ledger of what each node offers and what its
// pods have taken, filters nodes by selectors, taints and resources, scores
// what is left, and posts a Binding.
//
// Read scheduler.go (the loop) first, then ledger.go, filter.go, score.go and
// bind.go.
package scheduler
