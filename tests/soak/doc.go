// Package soak holds the long test of the client library: informers of every
// kind against a server with durable storage, while connections are cut,
// stalled and refused, the server is restarted and killed, history is
// compacted, and handlers are slow, panic, come and go. Again and again it
// becomes quiet, and then everything must agree with the server.
//
// `go test` runs it for twenty seconds; `make soak` for half an hour.
//
// The other tests have several servers on one etcd, behind a balancer: these are
// restarted one after another, and no informer may list because of that.
package soak
