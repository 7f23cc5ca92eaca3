// Package builtin is the table of the kinds that Kubernetes ships. It collects
// the packages below it: one package per API group, with an entry, the
// defaults, the validation and the printer columns of each kind.
//
// To add a kind, write one entry (see define.Resource) in its group's package.
package builtin
