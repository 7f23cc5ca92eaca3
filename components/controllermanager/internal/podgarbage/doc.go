// Package podgarbage removes pods that are deleted and that nothing else will remove, as a part of
// Kubernetes' pod garbage collector does. (Pods of nodes that are gone are nodelifecycle's.)
package podgarbage
