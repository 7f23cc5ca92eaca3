package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/storage/etcd"
)

// TestServeOnDamagedData: a server whose write-ahead log is gone ends at once, with one
// line and not with the code for a wrong command line.
func TestServeOnDamagedData(t *testing.T) {
	dir := t.TempDir()
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "etcd", "member", "wal")
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	got := invoke(t.Context(), "serve", "--data-dir="+dir, "--secure-port=0", "--log-level=error")
	if got.code != exitFailed {
		t.Errorf("exit code %d, want %d", got.code, exitFailed)
	}
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, log) || !strings.Contains(got.stderr, "levelwire snapshot restore") {
		t.Errorf("not one line that names the log and what to do: %q", got.stderr)
	}
}
