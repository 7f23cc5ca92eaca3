// Command upstreambench measures what Kubernetes' own kube-controller-manager and kube-scheduler make of an API
// server: Levelwire, and the real kube-apiserver with its etcd. For each number of pods it starts a server on an empty
// disk, the components with raised limits of their clients, and nodes that nobody runs. It creates a Deployment, waits
// until all pods are bound, deletes it, and waits until all pods are gone.
//
// A node is an object that this program writes. Its lease is not renewed, and the controller manager is told to be
// patient. A kubelet's part in a deletion is this program's: it removes the pods that are to end, on either server.
//
// Meanwhile a few ConfigMaps are updated at a fixed rate, and a watch says how long that took to a watcher's socket.
//
// `make bench-upstream` builds all programs and runs this.
//
// Reading order: plan.go (what is measured), controlplane.go (servers and components), workload.go (nodes and the
// Deployment), pods.go (what becomes of its pods), probe.go (the watch), report.go.
package main
