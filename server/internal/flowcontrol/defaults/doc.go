// Package defaults has the FlowSchemas and PriorityLevelConfigurations that every cluster
// has: the mandatory ones, whose specs are fixed, and the suggested ones, which operators
// may change. They are those of kube-apiserver.
package defaults
