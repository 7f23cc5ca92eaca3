// Package replay serves a recording (package recording) as a store: its state at a
// version, and then its changes at the recorded versions, at the pace at which they came,
// faster, slower, or one at a time. A server over it answers as the recorded one did.
//
// The Store keeps nothing of the recording in memory but, for a while, the last state
// that was read: streams, history and old states are read from the file, so a recording
// may be larger than memory. The Player moves the Store's current revision on.
//
// Reading order: layout.go (what the server calls things), player.go, store.go,
// state.go, stream.go, control.go.
package replay
