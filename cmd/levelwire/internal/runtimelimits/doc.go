// Package runtimelimits sets what Go's runtime may use in the process of a command: how much
// garbage comes together, the limit of memory, and how many threads run Go code.
package runtimelimits
