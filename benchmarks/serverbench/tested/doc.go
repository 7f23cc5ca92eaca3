// Package tested starts and measures the servers under test: Levelwire's own, and
// the one of the upstream libraries with its etcd. Each is one or more child
// processes whose processor time and memory are counted together.
package tested
