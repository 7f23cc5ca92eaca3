//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// leadsSession reports whether this process was started by setsid, or as a daemon.
func leadsSession() bool {
	session, err := unix.Getsid(0)
	return err == nil && session == os.Getpid()
}
