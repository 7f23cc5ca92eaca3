// Package columns lays objects out as the tables that kubectl get and kubectl
// get -o wide print: one file per API group, one function per kind. Headers,
// priorities and cell texts are those of Kubernetes 1.33 and later, so that
// people and scripts read what they are used to.
package columns
