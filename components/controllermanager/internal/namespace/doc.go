// Package namespace empties a namespace that is being deleted and then lets
// it go.
package namespace
