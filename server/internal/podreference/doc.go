// Package podreference lists the objects of its namespace that a pod refers to: what its
// node has to read to run it.
package podreference
