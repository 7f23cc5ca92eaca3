package maintenance

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSnapshotThatEndsEarly leaves the former file as it is.
func TestSnapshotThatEndsEarly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := saveSnapshot(io.Discard, strings.NewReader(strings.Repeat("x", 4096)), path); err == nil {
		t.Error("half a snapshot was saved")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "former" {
		t.Errorf("the former file is %q, %v", data, err)
	}
	if files, err := filepath.Glob(path + ".*"); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}
