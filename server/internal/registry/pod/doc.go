// Package pod is the subresources of pods that do more than change a part of the
// object: binding and eviction.
package pod
