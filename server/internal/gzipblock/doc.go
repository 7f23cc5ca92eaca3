// Package gzipblock writes gzip streams (RFC 1952) that are joined from blocks
// compressed before. A block is a piece of DEFLATE (RFC 1951) that refers to
// nothing before it and ends on a byte boundary, as a sync flush does. So blocks
// and text that is compressed while it is written can follow each other in any
// order. The checksum of the whole is combined from those of the blocks, without
// reading their text again.
package gzipblock
