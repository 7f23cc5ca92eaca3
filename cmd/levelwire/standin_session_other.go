//go:build !unix

package main

// leadsSession: there are no sessions, and a process keeps the ID of its parent when that has ended.
func leadsSession() bool { return false }
