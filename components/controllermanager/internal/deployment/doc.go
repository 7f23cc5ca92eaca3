// Package deployment rolls a Deployment's pods from one template to the next
// by scaling ReplicaSets, one for each template it has had.
//
// arithmetic.go decides, as pure functions, how far each set may be scaled;
// rollout.go carries a step out; progress.go reports. One reconciliation makes
// at most one kind of step and leaves the next to the watch, which brings the
// step's effect.
package deployment
