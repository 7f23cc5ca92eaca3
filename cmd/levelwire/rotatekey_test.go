package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/pki"
)

// TestRotateServiceAccountKey: the command replaces the key below --data-dir, and says what else verifies.
func TestRotateServiceAccountKey(t *testing.T) {
	dir := t.TempDir()
	none := invoke(t.Context(), "rotate-service-account-key", "--data-dir", dir)
	if none.code != exitFailed || !strings.Contains(none.stderr, "no server has made a key there") {
		t.Errorf("%+v", none)
	}
	key := pki.SigningKeyIn(filepath.Join(dir, "pki"), "service-account")
	if err := key.Ensure(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(key.Private)
	if err != nil {
		t.Fatal(err)
	}
	rotated := invoke(t.Context(), "rotate-service-account-key", "--data-dir", dir)
	if rotated.code != exitOK || !strings.Contains(rotated.stdout, "former keys that verify: 1") {
		t.Errorf("%+v", rotated)
	}
	after, err := os.ReadFile(key.Private)
	if err != nil || string(after) == string(before) {
		t.Errorf("the key is the same, %v", err)
	}
	dropped := invoke(t.Context(), "rotate-service-account-key", "--data-dir", dir, "--drop-former")
	if dropped.code != exitOK || !strings.Contains(dropped.stdout, "former keys dropped: 1") {
		t.Errorf("%+v", dropped)
	}
	if wrong := invoke(t.Context(), "rotate-service-account-key", "now"); wrong.code != exitUsage {
		t.Errorf("%+v", wrong)
	}
}
