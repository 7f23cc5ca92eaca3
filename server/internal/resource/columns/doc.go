// Package columns lays objects out as the tables that `kubectl get` and `kubectl
// get -o wide` print: the columns of a kind, and helpers that make its cells.
// What the built-in kinds print is beside them, in columns.go of each package
// below builtin. Headers, priorities and cell texts are those of Kubernetes 1.33
// and later, because people and scripts rely on them.
package columns
