// Package informertest is the contract of package informer as a suite of named
// guarantees: what programs written for client-go's informers rely on, and what
// ours promise beyond that. Run tries all of them on one API server; faults are
// made on the way to it, in the client's transport, so any server will do.
package informertest
