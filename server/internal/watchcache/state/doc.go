// Package state holds what a watch cache keeps of a resource at one moment, and
// how readers select from it: objects with their encoded forms, snapshots, the
// blocks that lists share, and compiled selections. It knows nothing of events.
//
// Reading order: object.go, content.go, compression.go, form.go, decode.go, snapshot.go, block.go,
// selection.go, interest.go.
package state
