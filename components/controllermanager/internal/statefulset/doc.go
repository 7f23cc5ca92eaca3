// Package statefulset keeps pods with stable names: each has a number, is
// created and updated in order (or all at once with podManagementPolicy
// Parallel), and comes back under the same name with the same claims.
//
// plan.go decides one step as a pure function; reconcile.go carries it out.
package statefulset
