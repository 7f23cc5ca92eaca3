// Package recording is the file format of recordings: what the lists and watches of a
// cluster sent, in the server's own JSON, in compressed blocks with checksums, with
// the whole state again from time to time and an index at the end. It is described in
// docs/contributors/recording-format.md.
//
// A Writer writes a file from its beginning to its end. A Reader reads a part of it at
// a time: what is in memory is one block, the index, and the list of resources. A file
// that was cut off, or is damaged, is read up to there, and Reader.Damage says where.
//
// Reading order: entry.go (what is recorded), block.go (how blocks are framed),
// payload.go (what is in them), writer.go, checkpoint.go, reader.go, cursor.go.
package recording
