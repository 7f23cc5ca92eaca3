// Package soak holds the long test of the client library and of a server with durable
// storage: informers of every kind, while connections are cut, stalled and refused,
// proxies answer with pages and redirects, servers with broken and oversized events, errors
// within streams, pages that are none and a Retry-After of a day, certificates of clients and of the server are rotated and
// expire, the server is restarted and killed, history is compacted, the database
// exceeds its quota, and handlers are slow, panic, come and go. Again and again it
// becomes quiet, and then everything must agree with the server, and the server with
// what it has acknowledged. A server that stops has no goroutines left.
//
// For root on Linux, the server's directory is a file system of its own, which becomes
// full, fails and is slow. In a test that was built with the overlay of command wallclock,
// as `make soak` does, wall clocks jump by hours.
//
// `go test` runs it for twenty seconds; `make soak` for half an hour. One kind of
// trouble alone: -soak.only "disk full".
//
// The other tests have several servers on one etcd, behind a balancer: these are
// restarted one after another, and no informer may list because of that.
package soak
