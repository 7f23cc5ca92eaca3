// Package replicaset keeps as many pods alive as each ReplicaSet asks for.
package replicaset
