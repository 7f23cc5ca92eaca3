// Package encoding decides in which form an answer is written, and writes it:
// objects, lists, watch events and Status errors in JSON, YAML, protobuf and
// CBOR, whole, as tables or as metadata only.
//
// negotiate.go matches an Accept header (Negotiate) with what an endpoint offers
// (Offer). encoder.go turns cached objects into the negotiated Form; items.go,
// listwriter.go and listruns.go join them to lists, events.go and stateevents.go
// put them into the frames of a watch. answer.go and compress.go write what is
// long in pieces, object.go and result.go what is short at once. body.go reads
// what clients send.
//
// Encoder and EventEncoder hold no locks. Bytes that they return may be those of
// the cache and must not be modified.
package encoding
