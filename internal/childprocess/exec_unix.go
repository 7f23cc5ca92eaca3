//go:build unix

package childprocess

import (
	"os"
	"syscall"
)

// closeOnExec keeps a file from children.
func closeOnExec(f *os.File) { syscall.CloseOnExec(int(f.Fd())) }
