// Package columns lays objects out as the tables that `kubectl get` and `kubectl
// get -o wide` print: the columns of a kind, and helpers that make its cells.
// What the built-in kinds print is beside them, in columns.go of each package
// below builtin. Headers, priorities and cell texts are those of Kubernetes 1.33
// and later, because people and scripts rely on them. So are the descriptions, to
// the letter: kubectl prints the headers again for a Table whose columns differ in
// anything from those of the one before, and behind a relay the two may be of
// kube-apiserver and of the relay. As kube-apiserver does, columns take what the
// API types say of their fields. SwaggerDoc is called of types and not through an
// interface, by which the linker would keep the texts of all types.
package columns
