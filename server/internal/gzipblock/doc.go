// Package gzipblock writes gzip streams (RFC 1952) that are joined from blocks
// compressed before. A block is a stretch of DEFLATE (RFC 1951) that looks at
// nothing before it and ends on a byte boundary, as a sync flush does; so blocks
// follow each other, and text that is compressed on the spot, in any order. The
// checksum of the whole is combined from those of the blocks: nothing of what
// they stand for is looked at again.
package gzipblock
