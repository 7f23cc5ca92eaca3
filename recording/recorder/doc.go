// Package recorder writes what the lists and watches of an API server send into a
// recording (package recording). It only reads: discovery, a list of each resource at
// one version, and then a watch of each.
//
// A reflector for each resource hands what it gets to one goroutine, the loop, which
// alone writes the file. In between, changes of different resources wait for a moment
// until they can be written in the order of their versions.
//
// Reading order: recorder.go, resources.go (what is recorded), source.go (the list of
// all resources at one version), object.go, store.go (what a reflector writes to),
// loop.go, order.go.
package recorder
