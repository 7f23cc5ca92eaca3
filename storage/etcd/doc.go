// Package etcd keeps a storage.Store in etcd: an external cluster (Open), or a
// member that runs inside this process (Embed), which is called by functions
// instead of sockets. Both use the same requests.
//
// The caller chooses the keys, and values are stored unchanged, so etcdctl and
// etcd's backup tools work on the data.
//
// Start reading at Store in store.go; then write.go, list.go, watch.go (one
// stream), progress.go (how streams keep up with Current), history.go (replay of
// old changes), lease.go (ttl) and errors.go. open.go connects to a cluster.
// embed.go starts the member in this process, bootstrap.go makes its first start
// safe, and lock.go keeps other processes out of its data directory.
//
// internals.go lists what an embedded member relies on beyond etcd's API, and
// checks it: local.go, localwatch.go, walsegments.go and residentset.go use it.
package etcd
