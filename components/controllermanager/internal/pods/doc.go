// Package pods is what the controllers that own pods share: telling which
// pods are theirs, creating them from a template, choosing which to delete,
// and reading their readiness.
package pods
