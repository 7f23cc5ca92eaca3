// Package scale is the subresource scale: the replicas of any kind that has them,
// as an autoscaling/v1 Scale, and the field manager that owns them.
package scale
