package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/storage/etcd"
)

// writtenDir is the data directory of a member that has stopped after some writes, more
// than one snapshot of raft's apart.
func writtenDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if _, err := store.Create(t.Context(), fmt.Sprintf("/registry/a/%03d", i), []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDamagedData: a start on data that is not all there fails at once, in one line that
// names the file and what to do.
func TestDamagedData(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(dir string) error
		want   []string
	}{
		"no write-ahead log": {
			func(dir string) error { return os.RemoveAll(filepath.Join(dir, "member", "wal")) },
			[]string{filepath.Join("member", "wal"), "levelwire snapshot restore"},
		},
		"an empty write-ahead log": {
			func(dir string) error {
				wal := filepath.Join(dir, "member", "wal")
				return errors.Join(os.RemoveAll(wal), os.Mkdir(wal, 0o700))
			},
			[]string{filepath.Join("member", "wal"), "levelwire snapshot restore"},
		},
		"a write-ahead log of zeros": {
			func(dir string) error { return overwrite(firstSegment(dir), 0, make([]byte, 4096)) },
			[]string{filepath.Join("member", "wal"), "levelwire snapshot restore"},
		},
		"a write-ahead log with another byte": {
			func(dir string) error { return overwrite(firstSegment(dir), 300, []byte("damaged")) },
			[]string{filepath.Join("member", "wal"), "levelwire snapshot restore"},
		},
		"no database": {
			func(dir string) error { return os.RemoveAll(filepath.Join(dir, "member", "snap", "db")) },
			[]string{filepath.Join("member", "snap", "db"), "levelwire snapshot restore"},
		},
		"a database of zeros": {
			func(dir string) error {
				return overwrite(filepath.Join(dir, "member", "snap", "db"), 0, make([]byte, 16384))
			},
			[]string{filepath.Join("member", "snap", "db"), "levelwire snapshot restore"},
		},
		"a database that ends early": {
			func(dir string) error { return os.Truncate(filepath.Join(dir, "member", "snap", "db"), 8192) },
			[]string{filepath.Join("member", "snap", "db"), "levelwire snapshot restore"},
		},
		"a database with other pages": {
			func(dir string) error {
				return overwrite(filepath.Join(dir, "member", "snap", "db"), 8192, slices.Repeat([]byte("damaged!"), 4096))
			},
			[]string{filepath.Join("member", "snap", "db"), "levelwire snapshot restore"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writtenDir(t)
			if err := test.damage(dir); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			begin := time.Now()
			store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir})
			if err == nil {
				err = store.Close()
				t.Fatalf("the start succeeds; close: %v", err)
			}
			t.Logf("after %v: %v", time.Since(begin), err)
			if ctx.Err() != nil {
				t.Error("the start waits for ever")
			}
			for _, want := range append(test.want, dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q", want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("the error has more than one line")
			}
		})
	}
}

func firstSegment(dir string) string {
	found, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	slices.Sort(found)
	return append(found, "no segment")[0]
}

func overwrite(path string, at int64, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, at)
	return errors.Join(err, file.Close())
}
