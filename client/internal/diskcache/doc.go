// Package diskcache keeps the objects of one informer in a file, with the
// version they show, so that a process that starts again need not list them.
//
//	magic, format | header | block of objects ... | end | progress ...
//
// It knows nothing of objects: they are bytes, encoded by the caller. A file
// is written under another name and renamed when it is complete, read as a
// stream, and checked from its first byte to its last: what is corrupt,
// truncated, of another informer or of a newer format is refused with a
// reason, never used in part. docs/users/disk-cache.md describes the format byte by
// byte.
package diskcache
