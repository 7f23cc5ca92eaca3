// Package scale is the subresource scale: the replicas of any kind that has them,
// as an autoscaling/v1 Scale, and who owns them.
package scale
