// Package atomicfile replaces whole files so that a crash never leaves half
// of one.
package atomicfile
