// Package aggregated tries an aggregated server of the upstream libraries behind
// Levelwire: k8s.io/apiserver with its delegating authentication and authorization, and
// one kind in memory, as sample-apiserver has it.
package aggregated
