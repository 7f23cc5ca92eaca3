// Package quota says what an object uses of a ResourceQuota. The server asks it
// before it admits a write, the resource quota controller when it counts: so both
// come to the same amounts.
//
// Pods, services, persistentvolumeclaims and resourceclaims use amounts of their own
// (pods.go, services.go, claims.go, devices.go); of every other kind the objects are counted (counts.go).
// scopes.go decides which objects a quota is about, lists.go computes with amounts.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/
package quota
