// Package job runs pods to completion.
//
// No ended pod is forgotten or counted twice, whenever this process is killed:
// each pod carries a finalizer, so that it cannot vanish before it is counted;
// its uid is written to the status as uncounted before the finalizer is taken,
// and becomes a number of the status after (KEP-2307). account.go is that
// bookkeeping; verdict.go decides how a job ends; indexes.go knows the indexes
// of an Indexed job.
package job
