// Package interop holds Levelwire against the upstream libraries: client-go's
// clients and informers against our server, our informers against the server of
// package upstream, and both informers side by side on both servers. It has
// only tests.
//
// A scenario is written once, in scenarios_test.go, as a script of writes and
// what a handler must get; matrix_test.go runs each with every combination of
// informer, server, encoding and way of listing. The other files hold one question
// each: what handlers of both informers get side by side, what cut connections and
// restarts do to them, dynamic and metadata informers,
// client-go's other clients, and refusals.
package interop
