// Package mmap measures and drops the pages of mapped files that count as
// memory of this process. Systems other than Linux are not Supported.
package mmap
