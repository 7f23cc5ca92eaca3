// Package relay holds the tests of relays as clients have them: servers of levelwiretest, one
// in front of the other, with a network that fails in between.
package relay
