// Package informer holds our informers to their contract, the suite of
// client/informer/informertest, on a server built from the upstream libraries.
// It has only tests.
package informer
