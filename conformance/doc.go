// Package conformance checks, from outside and over raw HTTP, whether an API
// server keeps what Kubernetes promises about lists and watches.
//
// Each promise is a Guarantee: a name that stays the same, a sentence, where
// it is specified, and a check. Run tries them against any server that a
// rest.Config reaches and returns a Report. Checks use none of this module's
// clients, servers or caches, so that a mistake in one of those cannot hide
// the same mistake in another.
//
// Read guarantee.go for what a guarantee is, env.go for what a check works
// with, run.go for how they are run, and then any of the files with checks:
// list.go, watch.go, initial.go, selection.go, forms.go, and stream.go, whose
// properties are decided by package history.
package conformance
