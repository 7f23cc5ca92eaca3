package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// descriptorsOf returns the descriptors of this process for files in a folder.
func descriptorsOf(t *testing.T, folder string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	var found []int
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name()))
		if err != nil || !strings.HasPrefix(target, folder) {
			continue
		}
		if number, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, number)
		}
	}
	return found
}

// replaceDescriptors makes writes and syncs of the files in a folder fail as those of
// the descriptor do.
func replaceDescriptors(t *testing.T, folder string, by int) {
	t.Helper()
	for _, descriptor := range descriptorsOf(t, folder) {
		if err := unix.Dup3(by, descriptor, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailingDisk: a disk that fails to sync, or was made read-only, while a member
// runs. A write that is not in the log is not acknowledged, all calls fail with a sentence, the store
// says so, and closes; the process lives. The next start has everything that was
// acknowledged.
func TestFailingDisk(t *testing.T) {
	if os.Getenv(failingChild) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFailingDisk$", "-test.timeout=10m")
		child.Env = append(os.Environ(), failingChild+"=1")
		var out bytes.Buffer
		child.Stdout, child.Stderr = &out, &out
		if err := childprocess.Run(child); err != nil {
			t.Errorf("%v\n%s", err, out.Bytes()[max(0, out.Len()-4096):])
		}
		return
	}
	noSync := func(t *testing.T) int {
		var ends [2]int
		if err := syscall.Pipe(ends[:]); err != nil { // which takes writes, and cannot be synced
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(syscall.Close(ends[0]), syscall.Close(ends[1])) })
		return ends[1]
	}
	readOnly := func(t *testing.T) int {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return int(file.Fd())
	}
	for name, test := range map[string]struct {
		folder string
		broken func(t *testing.T) int
	}{
		"log: sync fails":      {"wal", noSync},
		"log: read-only":       {"wal", readOnly},
		"database: sync fails": {"snap", noSync},
		"database: read-only":  {"snap", readOnly},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if _, err := store.Create(ctx, "/kept", []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
			copied := t.TempDir()
			replaceDescriptors(t, filepath.Join(dir, "member", test.folder)+"/", test.broken(t))
			ended := make(chan error, 1)
			go func() {
				short, cancel := context.WithTimeout(ctx, 2*time.Second) //passes: the write may hang, and either end of it will do
				defer cancel()
				_, err := store.Create(short, "/lost", []byte("x"), 0)
				ended <- err
			}()
			select {
			case <-store.Failed():
			case <-time.After(3 * time.Minute):
				t.Fatal("the store has not failed")
			}
			if err := store.Failure(); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "check the disk") {
				t.Errorf("failure: %v", err)
			}
			if _, err := store.Create(ctx, "/more", nil, 0); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("another write: %v", err)
			}
			acknowledged := <-ended == nil
			if acknowledged && test.folder == "wal" {
				t.Error("the write was acknowledged")
			}
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			next := start(t, etcd.EmbedConfig{Dir: copied})
			if kv, err := next.Get(ctx, "/kept", 0); err != nil || string(kv.Value) != "x" {
				t.Errorf("after the next start: %v, %v", kv, err)
			}
			if _, err := next.Get(ctx, "/lost", 0); err != nil && acknowledged {
				t.Errorf("a write that is in the log was acknowledged, and after the next start: %v", err)
			}
		})
	}
}
