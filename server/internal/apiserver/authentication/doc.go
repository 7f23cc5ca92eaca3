// Package authentication finds out which user sends a request: by client
// certificate, or by a bearer token that comes in a header or, from browsers,
// among the subprotocols of a WebSocket. It also answers the reviews that ask
// which user a token or a request belongs to.
package authentication
