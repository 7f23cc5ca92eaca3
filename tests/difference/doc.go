// Package difference checks the document that specifies differences,
// docs/users/difference.md, against the product: a client and a server written from
// the document alone talk to ours.
package difference
