// Package replicaset keeps as many pods alive as each ReplicaSet asks for, and each ReplicationController, which is an older
// kind of the same.
package replicaset
