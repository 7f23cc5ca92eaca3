// Package apiserver serves the Kubernetes API over HTTP: it turns a request
// into a verb on a resource, answers reads from the watch cache's bytes, and
// hands writes to the registry.
//
// A request passes, in this order: filters.go (panics, limits, deadlines,
// metrics), authenticate.go, requestinfo.go (what is asked), dispatch.go (who
// answers), and then one file per verb: get.go, list.go, watch.go for reads.
// negotiate.go decides in which form an answer is written; errors.go turns
// every error into a Status.
package apiserver
