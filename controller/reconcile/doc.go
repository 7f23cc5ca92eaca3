// Package reconcile is the frame of a controller: keys come in from informer
// handlers, a few workers bring the objects they name to the state that is
// wanted, and what fails is tried again later. A controller never acts on an
// event, only on the present state.
package reconcile
