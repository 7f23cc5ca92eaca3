// Package cluster starts servers, Levelwire or kube-apiserver, with Kubernetes' own components
// or with ours, as processes that end with this one. Each can be killed meanwhile, and is then
// started again.
package cluster
