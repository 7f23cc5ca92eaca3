// Package leader elects one of several processes by a Lease
// (coordination.k8s.io/v1), in the same fields as client-go's leader election:
// candidates of both kinds exclude each other.
//
// What is promised: the context that [Elector.Run] gives to the leader ends
// before any other candidate may lead, provided that
//
//   - clocks run at about the same rate: while one candidate's LeaseDuration
//     passes, the leader's clock must not be behind by more than LeaseDuration
//     less RenewDeadline. What time a clock shows does not matter; candidates
//     never compare the Lease's times with their own clock, but wait from the
//     moment they saw it change;
//   - identities are different: a candidate that finds its own name in a Lease leads;
//   - only candidates write the Lease, and it is not deleted;
//   - the leader stops, once its context has ended, within LeaseDuration less
//     RenewDeadline. Run goes on renewing until it has, if it may.
//
// A leader that was suspended with its machine notices by the wall clock that
// time is missing, at its next renewal. Work that must be safe even from a
// leader of the past needs guarded writes, as always.
package leader
