// Package informer holds our informers to their contract, the suite of
// client/informer/informertest, on a server built from the upstream libraries, and compares
// them with client-go's on servers that misbehave.
// It has only tests.
package informer
