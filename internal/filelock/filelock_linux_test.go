package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/levelwire/levelwire/internal/filelock"
)

// TestCloseReleases: the lock goes with Close although a child, as it begins, has a copy of the file.
func TestCloseReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock := func() (*os.File, error) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		const setLock = 37 // F_OFD_SETLK
		return f, syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_WRLCK})
	}
	held := func() bool {
		held, err := filelock.IsHeld(path)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	first, err := lock()
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(first.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if second, err := lock(); !errors.Is(err, syscall.EAGAIN) || !held() {
		t.Errorf("a locked file can be locked again: %v", err)
	} else {
		_ = second.Close()
	}
	if err := filelock.Hold(first).Close(); err != nil || held() {
		t.Errorf("it is held after Close: %v", err)
	}
	second, err := lock()
	if err != nil {
		t.Errorf("it cannot be locked after Close: %v", err)
	}
	_ = second.Close()
}
