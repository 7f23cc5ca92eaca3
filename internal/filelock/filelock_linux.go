package filelock

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Locks of open file descriptions (fcntl(2)), which etcd's fileutil takes where there are any.
const getLock, setLock = 36, 37 // F_OFD_GETLK, F_OFD_SETLK

func release(f *os.File) error {
	whole := syscall.Flock_t{Type: syscall.F_UNLCK, Whence: io.SeekStart}
	err := syscall.FcntlFlock(f.Fd(), setLock, &whole)
	if errors.Is(err, syscall.EINVAL) { // an old kernel: the lock is flock's
		return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return err
}

// IsHeld reports whether there is a lock on a file, without taking one.
func IsHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(f.Fd(), getLock, &lock)
	if errors.Is(err, syscall.EINVAL) {
		return false, nil // an old kernel says nothing of flock's
	}
	return err == nil && lock.Type != syscall.F_UNLCK, err
}
