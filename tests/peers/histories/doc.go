// Package histories compares what clients get with the history of the store.
// Informers of ours and of client-go, controller-runtime's cache,
// client-go's RetryWatcher and plain watches look at the same pods in several
// selections, while objects are written, deleted and made again under the same
// name, and while the clients are silenced, servers killed, clocks advanced by
// hours, and history is compacted by the servers or by another client of the
// store. Three servers share an etcd, or three members of one, which are killed
// and stopped. It has only tests.
//
// Read storehistory_test.go for the true history, which is read from the store;
// record_test.go for what is noted of a client; check_test.go for what must
// hold between the two, each check with a name; spoil_test.go for the proof
// that each check can fail; and scenarios_test.go for what happens.
//
// `go test` takes half a minute. With -histories.duration it plays scenarios
// with one seed after the other, from -histories.seed on.
package histories
