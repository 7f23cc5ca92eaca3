// Package atomicfile replaces whole files so that a crash never leaves an
// incomplete one.
package atomicfile
