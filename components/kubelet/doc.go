// Package kubelet simulates a node: it registers the node, renews its lease,
// watches the pods bound to it and reports what a kubelet would report, while
// no container runs. Everything it knows comes through client/informer and
// everything it says is written through the API.
//
// plan.go is the heart: a pure function from a pod and a time to the status
// the pod should show and when to look again.
package kubelet
