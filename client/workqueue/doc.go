// Package workqueue holds the keys a controller still has to reconcile.
//
// A [Queue] is level-triggered: adding a key that already waits changes
// nothing, a key is handed to one worker at a time, and a key added while a
// worker has it is handed out again after [Queue.Done]. Keys can have a
// priority, be added after a delay, with one timer for all of them, and after
// a back-off chosen by a [RateLimiter]. Memory is bounded by the number of
// different keys that wait, are delayed or are worked on.
//
// Start with [New], then [Queue.Add], [Queue.Get] and [Queue.Done].
package workqueue
