// Command relaybench measures relays: what an upstream's processor is used for with many
// watchers on relays, and with the same watchers on the upstream itself, and by how much each
// relay on the way delays an event.
//
//	go build -o levelwire ../cmd/levelwire
//	go run ./relaybench -levelwire ./levelwire -watchers 2000 -rate 20
//
// With -informers it measures instead what informers cost a relay, each on a connection of its
// own, and how long they take to go on at another relay when theirs is killed.
//
// All processes share the machine, so latencies of many watchers say how long the machine
// takes, and those of one watcher what a relay adds.
package main
