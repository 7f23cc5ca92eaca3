// Package etcdlog passes the log of an embedded member of etcd on, and notices when the member
// cannot go on.
package etcdlog
