// Package delta encodes an object as its difference from another one that the receiver
// has. A Levelwire server sends the changes of a watch like that to a relay that asks for it
// (Header), so that a change of few bytes in a large object costs few bytes on the link
// between them.
//
// The base of a change is the state of the object before it. The base of an object that is
// new is one of the last objects that were new in the same stream (Recent), because the
// objects of one owner are alike. A receiver without the base ends the stream, and asks for
// one without deltas: what is decoded is checked against a digest, so a wrong base gives an
// error and never a wrong object.
package delta
