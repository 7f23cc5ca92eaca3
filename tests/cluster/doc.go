// Package cluster holds the test of what several servers on several etcd members promise
// while these fail: three real etcd processes and three processes of `levelwire serve`, with
// clients over a balancer of TCP connections. Members and servers are killed and stopped,
// disks are made slow, networks are parted, a member runs out of its quota, and etcd is
// upgraded. Then everything must agree: see cluster_test.go for what is compared.
//
// With -cluster.relays, the same is done to one server with its own storage and two relays in
// front of it, which clients use. The wires between these lose packets, delay them and let
// them overtake each other.
//
// Networks can be parted by root only, in network namespaces of Linux; without it these
// tests are skipped and the others run on the loopback. The former release of etcd comes from
// the module proxy; the upgrade is skipped without it. `go test` takes some minutes, `make
// cluster` as long as CLUSTER says. With -artifacts the logs of all processes are kept
// when a test fails.
package cluster
