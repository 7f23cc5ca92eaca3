// Package filtered holds the test of filtered lists and watches (docs/users/filtered-lists.md)
// as clients have them: users read over HTTP/1.1, HTTP/2 and WebSocket, while objects, roles
// and bindings are written at random, connections are cut, history is compacted, and the
// server is killed. What each client got is compared with a model: the states of all objects
// at each revision, and what roles and bindings allowed at each revision, evaluated from
// Kubernetes' documentation alone. Two servers on one etcd are tried in the same way, while
// clients move between them, and one is killed or stopped; and in steps without chance, one of
// which cuts a server off from etcd.
//
// `go test -short` runs the steps, and one server for a second, `go test` everything for twenty
// seconds, `make filtered` for ten minutes with SEED.
package filtered
