// Package daemonset keeps one pod on every node that a DaemonSet is for. The
// scheduler binds the pods; each is pinned to its node by node affinity.
//
// plan.go decides, as pure functions, which nodes are eligible and what to
// create and delete; reconcile.go carries it out.
package daemonset
