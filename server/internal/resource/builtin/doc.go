// Package builtin is the table of the kinds that Kubernetes ships: one file
// per API group with one entry per kind, and beside them the defaults and the
// validation that those kinds have beyond what all kinds share.
//
// Adding a kind is one entry: see define.
package builtin
