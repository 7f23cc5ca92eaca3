// Command churn shows how much memory a small cluster needs that changes all the time: `levelwire
// up` with few nodes and few Deployments, each of which is rolled out again as soon as its
// last rollout is complete. What lives stays small, apart from Events, and so should the
// process.
//
// It prints, at intervals, the revisions written, what the process has resident, what its
// heap holds, what the caches count by cause, and how large the database is.
package main
