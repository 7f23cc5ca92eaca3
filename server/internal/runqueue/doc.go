// Package runqueue bounds how many handlers of requests compute at the same time, as an
// operating system's run queue does for threads: Go runs all goroutines in one order, so
// that each step of a short request, and of a write's way to its event, waits for every
// handler that is ready to run before it.
//
// A user's handlers compute as many at a time as there are processors, and the rest of them
// wait, without being ready to run; priority levels have turns by their shares, and the users
// of a level take turns. A user with requests of several levels counts in each as another
// one: what is more urgent does not wait for what is less. A handler that waits for something
// else, such as the network, the store or a seat, does not count: it says so with
// Task.Block. One that does not say so, or that computes for longer without Task.Yield, counts
// for at most two quanta: this package keeps short steps short, and seats bound what takes long.
//
// A handler that need not wait costs one lock and no allocation.
package runqueue
