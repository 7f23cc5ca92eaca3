// Package health serves named checks as the components of Kubernetes do: /livez and
// /healthz, of which a failure restarts the process, and /readyz, of which a
// failure keeps requests away from it.
//
// Start with [NewHandler]; a [Server] serves it in a program of controllers. A check of a cache or a controller belongs to readiness:
// an API server that is away makes caches stale in every process of a cluster, and a
// restart mends none of them but empties them all. A leader that has lost its Lease
// and works on belongs to liveness.
package health
