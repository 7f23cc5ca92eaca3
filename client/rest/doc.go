// Package rest is the client's side of the Kubernetes API over HTTP: typed by
// generics ([For]), dynamic ([Dynamic]) or reduced to metadata ([Metadata]).
//
// Start with [New] and [For]; then [Resource.List] and [Resource.Watch] are
// what everything else here serves. Both decode while they read: a list is
// never held as bytes and as objects at once, and a watch decodes each event
// once, into the type that the caller asked for.
//
// Requests end when their context does; there is no other timeout, and no
// limit on the rate of requests: a server that has too much to do says so
// with 429 and Retry-After, which is honoured (see [RetryOptions]).
//
// A connection that went silent without being closed is found by HTTP/2 pings
// or, for HTTP/1.1, by TCP keep-alives; see [Options.ReadIdleTimeout].
package rest
