// Package verify runs the conformance checks against a server built from the
// upstream libraries, and holds what they say there to what is written down.
package verify
