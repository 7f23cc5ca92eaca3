// Package fairqueue hands out the seats of a server: requests hold them while the server
// works on them. Priority levels have seats by their shares, and lend what they do not
// use; in a level, flows take turns.
//
// Kubernetes' API says what levels and flows are (KEP-1040); this is its scheduler, with
// three differences to the queue sets of kube-apiserver:
//
//   - A flow has a queue of its own, instead of being dealt onto a hand of shared ones:
//     no two flows collide. The limits are those that the hand would have.
//   - A flow holds at most three times the seats that are free, so that requests that
//     hang, and never give their seats back, leave some to the next flow.
//   - Levels borrow at the moment when a seat is needed and free, not every ten seconds.
//
// Taking a seat that is free costs one lock and no allocation.
//
// Reading order: seats.go, level.go, flow.go, grant.go, stats.go.
package fairqueue
