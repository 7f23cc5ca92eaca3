package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

func TestEmbedKeepsDataAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	first := start(t, etcd.EmbedConfig{Dir: dir})
	rev, err := first.Create(t.Context(), "/a", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, etcd.EmbedConfig{Dir: dir})
	kv, err := second.Get(t.Context(), "/a", 0)
	if err != nil || string(kv.Value) != "1" || kv.Modified != rev {
		t.Fatalf("after a restart: %q at %d, %v; want 1 at %d", kv.Value, kv.Modified, err, rev)
	}
	next, err := second.Update(t.Context(), "/a", []byte("2"), rev, 0)
	if err != nil || next <= rev {
		t.Fatalf("update after a restart: %d, %v", next, err)
	}
	stream, err := second.Watch(t.Context(), "/", 0)
	if err != nil {
		t.Fatal(err)
	}
	for reached := storage.Revision(0); reached < next; {
		batch, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		reached = batch.Revision
	}
}

// BenchmarkEmbed opens and closes a store: about 60 ms, where etcd by itself waits for a
// second.
func BenchmarkEmbed(b *testing.B) {
	for b.Loop() {
		if err := start(b, etcd.EmbedConfig{Dir: b.TempDir()}).Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEmbedRefusals expects one clear line that names the directory.
func TestEmbedRefusals(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    string
	}{
		{"used by a store", func(t *testing.T, dir string) {
			start(t, etcd.EmbedConfig{Dir: dir})
		}, "in use by another process"},
		{"used by another etcd", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "member", "snap", "db")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
		}, "in use by another process"},
		{"a file", func(t *testing.T, dir string) {
			write(t, dir, "not a directory")
		}, "not a directory"},
		{"database is garbage", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "member", "snap", "db"), strings.Repeat("garbage", 10_000))
		}, "not a usable etcd database"},
		{"database is a directory", func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, "member", "snap", "db"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "cannot be opened"},
		{"log is garbage", func(t *testing.T, dir string) {
			store := start(t, etcd.EmbedConfig{Dir: dir})
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
			if err != nil || len(logs) == 0 {
				t.Fatalf("no log: %v", err)
			}
			for _, path := range logs {
				write(t, path, strings.Repeat("garbage", 10_000))
			}
		}, "member/wal is missing or damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			test.prepare(t, dir)
			store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: dir})
			if err == nil {
				store.Close()
				t.Fatal("Embed succeeded")
			}
			if msg := err.Error(); !strings.Contains(msg, test.want) || !strings.Contains(msg, dir) || strings.Contains(msg, "\n") {
				t.Errorf("got %q, want one line with %q and %q", msg, test.want, dir)
			}
		})
	}
	if _, err := etcd.Embed(t.Context(), etcd.EmbedConfig{}); err == nil {
		t.Error("Embed without a directory succeeded")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEmbedEndsWithItsContext ends the context at several moments of a first
// start, and expects the next start to succeed on what is left.
func TestEmbedEndsWithItsContext(t *testing.T) {
	for _, startTimeout := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, time.Minute} {
		t.Run(startTimeout.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			dir := t.TempDir()
			store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir})
			if err == nil {
				err = store.Close()
			} else if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
			next := start(t, etcd.EmbedConfig{Dir: dir})
			if _, err := next.Create(t.Context(), "/a", nil, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestEmbedLimits(t *testing.T) {
	small := start(t, etcd.EmbedConfig{MaxValueBytes: 10_000})
	if _, err := small.Create(t.Context(), "/a", make([]byte, 20_000), 0); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a value above MaxValueBytes: %v, want %v", err, storage.ErrTooLarge)
	}
	if _, err := small.Create(t.Context(), "/a", make([]byte, 10_000), 0); err != nil {
		t.Errorf("a value of MaxValueBytes: %v", err)
	}
	full := start(t, etcd.EmbedConfig{QuotaBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if _, err := full.Create(t.Context(), "/a", nil, 0); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "quota") {
		t.Errorf("a write above QuotaBytes: %v, want %v", err, storage.ErrUnavailable)
	}
}

func TestEmbedListensOnlyWhenAsked(t *testing.T) {
	if url := start(t, etcd.EmbedConfig{}).ClientURL(); url != "" {
		t.Errorf("an embedded etcd listens at %s", url)
	}
	server := start(t, etcd.EmbedConfig{ListenClientURL: anyPort})
	if url := server.ClientURL(); !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("ClientURL is %q", url)
	}
	if url := connect(t, server).ClientURL(); url != "" {
		t.Errorf("an external store claims to serve at %q", url)
	}
}

// TestEmbedIsQuiet starts, writes and stops without a line in the log at the default
// level, and with lines at debug level.
func TestEmbedIsQuiet(t *testing.T) {
	for level, quiet := range map[slog.Level]bool{slog.LevelInfo: true, slog.LevelDebug: false} {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		store := start(t, etcd.EmbedConfig{Logger: logger})
		if _, err := store.Create(t.Context(), "/a", nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if (out.Len() == 0) != quiet {
			t.Errorf("at level %v etcd said %q", level, out.String())
		}
	}
}
