// Package namespace empties a namespace that is being deleted, pods first, and then lets
// it go.
package namespace
