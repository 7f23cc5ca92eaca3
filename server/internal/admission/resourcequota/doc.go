// Package resourcequota is the admission plugin ResourceQuota: it refuses what would
// take a namespace above a quota, as kube-apiserver does.
//
// Before an object is written, what it uses is claimed: added to the used amounts in
// the status of each ResourceQuota that limits it, by a write that the store guards by
// the quota's revision. So several servers that use one store never admit more than the
// quota together. A claim is given back if the object's write is refused, and kept if
// its outcome is unknown; then, as after the end of a server between the two writes, the
// resource quota controller corrects the status. A dry run claims nothing.
//
// All requests of a namespace that come while its quotas are being written wait, and are
// decided together by the next write (batch.go). So 64 concurrent creates cost a few
// writes of the quota, and not 64 that refuse each other.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/
package resourcequota
