// Command levelwire runs Kubernetes' list-watch machinery: an API server, and
// around it the controllers, the scheduler and simulated kubelets that turn a
// ReplicaSet into running pods. `levelwire up` runs all of it in one process.
package main
