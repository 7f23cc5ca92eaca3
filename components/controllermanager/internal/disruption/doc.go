// Package disruption keeps the status of PodDisruptionBudgets: how many pods
// are healthy, how many have to be, and so how many the eviction subresource
// may still take. The server takes from the allowance and notes the pod; this
// controller gives it back when the pod has gone or has stayed.
package disruption
