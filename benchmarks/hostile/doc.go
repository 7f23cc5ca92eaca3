// Command hostile attacks an API server in every way of package attacks at once, while the
// clients of package quiet measure what others notice: Levelwire's server and the one of the
// upstream libraries, one after the other.
//
// For each server it measures three phases: quiet, hostile (two thirds of the time), and
// after. It prints the quiet clients' latencies and errors, the server's processor time and
// memory, and how often each attack was made. It fails if Levelwire does not keep its
// promise: no errors, nothing lost, a p99 within three times the quiet one, and memory back.
//
// With -crowding only one user's requests, watches, bodies and floods attack, and the p99
// must be within twice the quiet one.
//
//	make hostile DURATION=1h
//	make crowding
package main
