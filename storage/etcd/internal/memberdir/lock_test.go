package memberdir

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestLockWhileProcessesStart: a process may use a directory again as soon as it has left it, whatever it starts
// meanwhile. A child has copies of the locked files until it runs its program.
func TestLockWhileProcessesStart(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	defer starting.Wait()
	defer cancel()
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, program).Run()
			}
		})
	}
	dir := t.TempDir()
	for n := range 500 {
		lock, err := Lock(dir)
		if err != nil {
			t.Fatalf("use %d of the directory: %v", n+1, err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAwaitLog: copies of the files of etcd's log are waited for, and whoever keeps them is named.
func TestAwaitLog(t *testing.T) {
	for name, kept := range map[string]time.Duration{"for a moment": 100 * time.Millisecond, "for good": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				log := datadir.ToWALDir(dir)
				if err := os.MkdirAll(log, 0o700); err != nil {
					t.Fatal(err)
				}
				file, err := fileutil.TryLockFile(filepath.Join(log, "0-0.wal"), os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				go func() {
					time.Sleep(kept)
					_ = file.Close()
				}()
				err = awaitLog(dir)
				took := time.Since(begun)
				if long := kept > logPatience; errors.Is(err, ErrInUse) != long || !long && (err != nil || took < kept) || took > logPatience+time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				time.Sleep(kept)
			})
		})
	}
}
