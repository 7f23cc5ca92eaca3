//go:build !linux

package transport

import (
	"syscall"
	"time"
)

// setUserTimeout has no portable form: keep-alives alone find a dead peer.
func setUserTimeout(time.Duration) func(network, address string, conn syscall.RawConn) error {
	return nil
}
