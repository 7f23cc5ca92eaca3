// Package endpointslicemirroring keeps EndpointSlices that say what an Endpoints object says which somebody has
// written for a Service without a selector, so that those who read EndpointSlices only find its addresses, too.
//
// canonical.go and desired.go work out what should be, as Kubernetes' controller does; plan.go compares it with the
// slices that exist; controller.go says which Endpoints are mirrored, and writes.
package endpointslicemirroring
