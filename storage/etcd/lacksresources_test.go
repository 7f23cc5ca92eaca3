//go:build linux

package etcd

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/levelwire/levelwire/storage/etcd/internal/mmap"
)

// messages is a log handler that hands over each message, and waits until it is taken.
type messages chan string

func (m messages) Enabled(context.Context, slog.Level) bool { return true }
func (m messages) Handle(_ context.Context, r slog.Record) error {
	m <- r.Message
	return nil
}
func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }
func (m messages) WithGroup(string) slog.Handler      { return m }

// want takes the next message.
func (m messages) want(t *testing.T, part string) {
	t.Helper()
	if got := <-m; !strings.Contains(got, part) {
		t.Fatalf("logged %q, want %q", got, part)
	}
}

// withoutFiles has every opening of a file fail with EMFILE until the result is called.
func withoutFiles(t *testing.T) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(restore)
	return restore
}

// TestSegmentsArePreparedAfterFilesWereLacking, or room on the disk.
func TestSegmentsArePreparedAfterFilesWereLacking(t *testing.T) {
	s, content := logDir(t, "0.tmp")
	s.check = make(chan struct{}) // each is taken when the one before has been dealt with
	log := make(messages)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.run(ctx, slog.New(log)) })
	restore := withoutFiles(t)
	s.check <- struct{}{}
	log.want(t, "for now")
	s.check <- struct{}{} // is not logged again
	select {
	case <-log:
		t.Fatal("logged twice")
	case s.check <- struct{}{}:
	}
	restore()
	select {
	case s.check <- struct{}{}:
		log.want(t, "prepared again")
	case got := <-log: // the last check was as late as that
		if !strings.Contains(got, "prepared again") {
			t.Fatal(got)
		}
	}
	cancel()
	group.Wait()
	if got := len(content("1.tmp")); got != segmentBytes {
		t.Errorf("the segment has %d bytes", got)
	}
}

// TestPagesAreDroppedAfterFilesWereLacking: the loop that gives back memory survives.
func TestPagesAreDroppedAfterFilesWereLacking(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	mapped, err := syscall.Mmap(int(opened.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(mapped) }()
	if size, err := mmap.Size(file); err != nil || size == 0 {
		t.Skipf("mappings cannot be read here: %d, %v", size, err)
	}
	log := make(messages)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	restore := withoutFiles(t)
	group.Go(func() { (&localMember{file: file}).limitResidentSet(ctx, slog.New(log)) })
	log.want(t, "for now")
	restore()
	log.want(t, "dropped again")
	cancel()
	group.Wait()
}
