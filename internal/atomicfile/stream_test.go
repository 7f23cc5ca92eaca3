package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNothingIsSeenBeforeCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Fatalf("before Commit: %q, %v", got, err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Fatalf("after Commit and Abort: %q, %v", got, err)
	}
}

func TestAbortAndSweepLeaveNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd[name]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	aborted, err := Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	aborted.Abort()
	// As a process leaves it that is killed.
	killed, err := Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.file.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := Write(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(path); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}
