// Command neighbours measures what large work of one user costs all others: definitions that
// change all the time, the deletion of a namespace with many objects, as many objects
// whose owner is deleted, which the garbage collector deletes, and many reads that wait for a
// conversion webhook which does not answer. The clients of package quiet measure it.
//
// Each is measured with a server and a controller manager of its own, in three phases: quiet,
// while the work lasts, and after it. It fails if work raises a client's p99 above twice the quiet one.
//
//	make neighbours OBJECTS=100000
package main
