// Command serverbench compares Levelwire's server with one made of the upstream
// libraries (tests/peers/upstream), in one run: the same objects, the same load
// clients, TLS and HTTP/2, etcd with fsync.
//
// Each server, the upstream server's etcd and each load client is a process of
// its own, so that the servers' processor time and memory are measured apart from
// everything else. docs/contributors/benchmarks.md says what is measured and what
// came out.
//
// Reading order: row.go (what a measurement is), plan.go (what is measured, and
// in which order), tested/ (the servers under test), baretls/ (the limits that
// they are compared with), process/ (child processes), seed.go (what the servers
// hold), report.go and pictures.go. Every other file is one group of
// measurements, with the work of its load clients. Storms have a page of their
// own, docs/contributors/benchmarks-storm.md, and their clients a package,
// stormclients/.
package main
