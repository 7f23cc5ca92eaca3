// Package ring is a queue that reuses its memory.
package ring
