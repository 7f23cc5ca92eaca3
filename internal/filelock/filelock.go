// Package filelock releases locks on files in a process that starts others.
//
// A child has copies of all files of its parent, and with them the locks on them, until it runs its program.
// A lock that ends with the last copy of its file may therefore outlive the file's Close for a moment, and whoever
// locks the file again in that moment, as a server that is restarted within its process does, finds it in use.
package filelock

import (
	"errors"
	"os"
)

// Held is a lock on a file. Close releases it at once, whoever has copies of the file.
type Held struct{ file *os.File }

// Hold returns the lock that fileutil.TryLockFile of etcd has taken on a file, which is the
// result's from then on.
func Hold(file *os.File) *Held { return &Held{file} }

// Close releases the lock and closes the file.
func (h *Held) Close() error { return errors.Join(release(h.file), h.file.Close()) }
