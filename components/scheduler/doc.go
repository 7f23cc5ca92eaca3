// Package scheduler binds pods to nodes. It is an ordinary user of
// client/informer: it keeps a ledger of what each node offers and what its
// pods have taken, filters nodes by selectors, taints and resources, scores
// what is left, and posts a Binding. For a pod that fits nowhere, it has less
// important ones leave a node.
//
// Read scheduler.go (the loop) first, then ledger.go, filter.go, score.go,
// bind.go, preempt.go, budgets.go and nominate.go.
package scheduler
