// Package tour uses every part of the client library against a server, as one
// program would. Its test runs it against ours; tests/peers runs it against a server
// of the upstream libraries.
package tour
