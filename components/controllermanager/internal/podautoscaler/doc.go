// Package podautoscaler is the HorizontalPodAutoscaler controller: it sets the replicas of
// whatever has a scale subresource by what its pods use, as metrics.k8s.io says, and by
// what custom.metrics.k8s.io and external.metrics.k8s.io say.
//
// usage.go turns values into a number of replicas, behavior.go limits how fast that
// changes; both are pure functions. metrics.go and custommetrics.go read the values,
// controller.go reads and writes the scale.
package podautoscaler
