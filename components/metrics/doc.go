// Package metrics serves metrics.k8s.io/v1beta1, which kubectl top and
// HorizontalPodAutoscalers read, for pods that kubelets simulate: what they seem to use is
// components/kubelet's Usage. It is an aggregated server behind an APIService, so that a
// cluster whose nodes are real may have a real metrics server in its place.
package metrics
