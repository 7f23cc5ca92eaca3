// Package nodelifecycle finds nodes that have gone silent and takes their pods
// away from them.
//
// A node lives as long as its lease changes. Changes are timed by this
// process's own clock, so that a node's wrong clock means nothing, and a
// restarted controller gives every node a full period before it judges.
//
// When no node is heard of any more, none loses its pods: disruption.go. Otherwise
// health.go decides about nodes and eviction.go about pods, both as pure
// functions of what is seen and the time; node.go and pods.go carry it out.
package nodelifecycle
