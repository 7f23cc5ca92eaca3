// Package writefuzz sends writes to a server in memory that nobody would send: manifests of all kinds, of
// which some fields have other values, through every verb, patch type and subresource. No answer is a
// server's error, and nothing panics.
//
// Its seeds run in `make test`. To go on from there:
//
//	go test -fuzz FuzzWrites -fuzztime 10m ./tests/writefuzz
package writefuzz
