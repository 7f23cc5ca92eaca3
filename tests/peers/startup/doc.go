// Package startup measures how long it takes from the start of a process with
// empty data until it serves: `levelwire serve` beside a server made of the
// upstream libraries with an etcd in the same process, which is as fast as such
// a server can be. It has only benchmarks.
package startup
