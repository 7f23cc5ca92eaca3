package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// liveSegment is the name of a segment in use.
const liveSegment = "0000000000000000-0000000000000000.wal"

// logDir makes a member's folder whose log has a segment in use and the given
// files. Each file's content is its name.
func logDir(t *testing.T, names ...string) (*segmentPreparer, func(name string) []byte) {
	t.Helper()
	dir := t.TempDir()
	s := newSegmentPreparer(dir)
	names = append(names, liveSegment)
	if err := os.MkdirAll(s.log, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(s.log, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(s.log, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return content
	}
}

func TestTheMissingSegmentIsProvided(t *testing.T) {
	for have, missing := range map[string]string{"0.tmp": "1.tmp", "1.tmp": "0.tmp"} {
		s, content := logDir(t, have)
		if err := s.provide(); err != nil {
			t.Fatal(err)
		}
		if got := content(missing); len(got) != segmentBytes || len(bytes.Trim(got, "\x00")) > 0 {
			t.Errorf("%s has %d bytes, or is not empty", missing, len(got))
		}
		if string(content(have)) != have {
			t.Errorf("%s was touched", have)
		}
		if _, err := os.Stat(s.spare); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the spare has two names still: %v", err)
		}
	}
}

func TestNoSegmentIsProvidedWithoutNeed(t *testing.T) {
	for _, have := range [][]string{nil, {"0.tmp", "1.tmp"}} {
		s, content := logDir(t, have...)
		if err := s.provide(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"0.tmp", "1.tmp"} {
			if len(have) == 0 && content(name) != nil || len(have) > 0 && string(content(name)) != name {
				t.Errorf("with %v, %s became %d bytes", have, name, len(content(name)))
			}
		}
	}
}

// TestASegmentInUseIsNotWrittenTo begins where a process died between linking the
// spare into the log and unlinking its first name.
func TestASegmentInUseIsNotWrittenTo(t *testing.T) {
	s, content := logDir(t, "0.tmp")
	if err := os.Link(filepath.Join(s.log, liveSegment), s.spare); err != nil {
		t.Fatal(err)
	}
	if err := s.provide(); err != nil {
		t.Fatal(err)
	}
	if string(content(liveSegment)) != liveSegment || len(content("1.tmp")) != segmentBytes {
		t.Errorf("the segment in use has become %d bytes, the prepared one %d", len(content(liveSegment)), len(content("1.tmp")))
	}
}

// TestWritesAreThereAfterManySegments reopens a store whose log used prepared
// segments.
func TestWritesAreThereAfterManySegments(t *testing.T) {
	dir := t.TempDir()
	store, err := Embed(t.Context(), EmbedConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const writes = 5 * commitsPerCheck
	value := bytes.Repeat([]byte("v"), 4*segmentBytes/writes)
	for i := range writes {
		if _, err := store.Create(t.Context(), fmt.Sprintf("/%05d", i), value, time.Duration(0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "member", spareName))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left behind (%v)", left, err)
	}
	if store, err = Embed(t.Context(), EmbedConfig{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	page, err := store.List(t.Context(), "/", storage.ListOptions{KeysOnly: true})
	if err != nil || len(page.Items) != writes {
		t.Errorf("%d of %d writes are there (%v)", len(page.Items), writes, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
