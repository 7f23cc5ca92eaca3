//go:build !levelwire_detect_mutations

package informer

// mutationsByTag is the Interval of informers that do not say.
const mutationsByTag = 0
