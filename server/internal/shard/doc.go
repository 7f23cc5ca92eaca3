// Package shard parses and evaluates shard selectors, with which a client
// lists and watches a part of a collection (KEP-5866): the objects whose UID
// or namespace hashes into given ranges.
package shard
