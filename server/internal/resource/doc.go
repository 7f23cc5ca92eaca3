// Package resource says what a served kind is: its names and scope, its
// codec, the attributes that selectors look at, its table columns and the
// strategy that writes follow. Everything above it (watch cache, registry,
// API server) treats kinds as data; package builtin is the table of those
// that Kubernetes ships.
//
// Reading order: resource.go, strategy.go and table.go (what a kind is),
// codec.go and withrevision.go (the bytes that are stored, cached and sent), package
// structjson (how ordinary objects are decoded and encoded),
// attributes.go and labels.go (what is read from them in one pass), body.go,
// protobuf.go and cbor.go (what clients send and may ask for), package jsonproto
// (JSON to protobuf without an object in between).
package resource
