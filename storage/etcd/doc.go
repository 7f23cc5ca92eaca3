// Package etcd keeps a storage.Store in etcd: an external cluster (Open), or a
// member that runs inside this process (Embed), whose calls go through
// functions instead of sockets. Everything after the opening is one code path.
//
// The key layout is the caller's and values are stored as they are, so etcdctl
// and etcd's backup tools work on the data.
//
// Start reading at Store in store.go; then write.go, list.go, watch.go (one
// stream), progress.go (how streams keep up with Current), lease.go (ttl) and
// errors.go. open.go and embed.go are the two beginnings; local.go, localwatch.go
// and segments.go are what is different, and cheaper, within the process.
package etcd
