// Package ported tests three controllers that were written for controller-runtime
// and are ported to this library; docs/users/from-controller-runtime.md compares
// them.
package ported
