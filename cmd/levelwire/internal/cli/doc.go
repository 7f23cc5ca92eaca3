// Package cli has what several commands need: mistakes on the command line, the flags that
// choose a cluster and how to log, sizes in bytes, the version, and text for terminals.
package cli
