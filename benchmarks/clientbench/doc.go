// Command clientbench compares the client library with client-go, in one run: typed
// pods, JSON and protobuf, from one server.
//
// It starts itself as child processes: one is the server, and each measurement
// is a process of its own, so that its processor time and memory are measured
// apart from everything else. Measurements of the two libraries
// take turns, each is repeated, and the medians are compared. See
// docs/contributors/benchmarks-client.md for what is measured and what came out.
package main
