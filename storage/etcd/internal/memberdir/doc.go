// Package memberdir looks after the files of an embedded member of etcd: one process uses them,
// an interrupted first start is repeated, and damage is found before etcd starts on it.
package memberdir
