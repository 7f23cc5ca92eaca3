package diskcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var pods = Identity{Server: "here", Resource: "v1/pods", Selection: "namespace=a", Encoding: "json"}

var saved = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func header(version string) Header {
	return Header{Identity: pods, Cluster: "uid", Version: version, Saved: saved}
}

func write(t testing.TB, path, version string, objects ...string) Written {
	t.Helper()
	w, err := Create(path, header(version), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := w.Add([]byte(object)); err != nil {
			t.Fatal(err)
		}
	}
	written, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// read returns everything that a file holds, or why it was refused.
func read(path string, want Identity, limits Limits) (objects []string, version string, err error) {
	r, err := Open(path, want, limits)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		object, err := r.Next()
		if errors.Is(err, io.EOF) {
			return objects, r.Version(), nil
		}
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, string(object))
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	big := strings.Repeat("x", 3*blockTarget)
	tests := map[string][]string{
		"nothing":        nil,
		"one":            {"a"},
		"an empty one":   {"a", "", "b"},
		"several blocks": {big, "a", big, "b", strings.Repeat("y", blockTarget-1), "c"},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			written := write(t, path, "17", objects...)
			got, version, err := read(path, pods, Limits{})
			if err != nil || version != "17" || !slices.Equal(got, objects) {
				t.Fatalf("read %d objects of version %q, %v", len(got), version, err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 || info.Size() != written.Bytes {
				t.Errorf("mode %v, %d bytes, %v; want 0600 and %d", info.Mode(), info.Size(), err, written.Bytes)
			}
		})
	}
}

func TestHeaderIsKnownBeforeTheObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "17", "a")
	r, err := Open(path, pods, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header()
	if h.Cluster != "uid" || h.Version != "17" || !h.Saved.Equal(saved) || h.Identity != pods {
		t.Errorf("header %+v", h)
	}
}

func TestAdvanceMovesTheResourceVersionOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	written := write(t, path, "17", "a", "b")
	for n := range 3 {
		if err := written.Advance(fmt.Sprint(20+n), saved.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	objects, version, err := read(path, pods, Limits{})
	if err != nil || version != "22" || len(objects) != 2 {
		t.Fatalf("read %v of version %q, %v", objects, version, err)
	}
	// The process dies within a note, at each of its bytes.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	note := lengthBytes + 8 + len("22") + sumBytes
	for cut := 1; cut < note; cut++ {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, version, err := read(path, pods, Limits{}); err != nil || version != "21" {
			t.Errorf("%d bytes cut off: version %q, %v; want 21", cut, version, err)
		}
	}
	if err := written.Advance("23", saved); err == nil {
		t.Error("a file that another writer has changed was advanced")
	}
}

func TestAFileThatWasReadCanBeAdvanced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	first := write(t, path, "17", "a")
	if err := first.Advance("18", saved); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, pods, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ok := r.Written(); ok {
		t.Error("a file that has not been read is taken for sound")
	}
	for err == nil {
		_, err = r.Next()
	}
	again, ok := r.Written()
	if !ok {
		t.Fatalf("not complete: %v", err)
	}
	if err := again.Advance("19", saved); err != nil {
		t.Fatal(err)
	}
	if _, version, err := read(path, pods, Limits{}); err != nil || version != "19" {
		t.Errorf("version %q, %v", version, err)
	}
}

func TestEveryDamageIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "17", "object a", "object b")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, data []byte, want ...Reason) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := read(path, pods, Limits{})
		var refused *RefusedError
		if !errors.As(err, &refused) || len(want) > 0 && !slices.Contains(want, refused.Reason) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	for n := range whole {
		if n < preludeBytes {
			try(fmt.Sprintf("cut at %d", n), whole[:n], Foreign)
		} else {
			try(fmt.Sprintf("cut at %d", n), whole[:n], Truncated)
		}
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		try(fmt.Sprintf("bit flipped at %d", n), flipped)
	}
	newer := bytes.Clone(whole)
	binary.LittleEndian.PutUint16(newer[len(magic):], formatVersion+1)
	try("a newer format", newer, Newer)
	try("a text", []byte("apiVersion: v1\nkind: PodList\nitems: []\n"), Foreign)
	try("nothing", nil, Foreign)
	try("rubbish behind", append(bytes.Clone(whole), make([]byte, 64)...), Corrupt)
}

func TestAnotherIdentityIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "17", "a")
	for name, change := range map[string]func(*Identity){
		"server":    func(id *Identity) { id.Server = "there" },
		"resource":  func(id *Identity) { id.Resource = "v1/services" },
		"selection": func(id *Identity) { id.Selection = "" },
		"encoding":  func(id *Identity) { id.Encoding = "protobuf" },
	} {
		want := pods
		change(&want)
		_, _, err := read(path, want, Limits{})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != Foreign || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMissingFileIsNotARefusedOne(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "f"), pods, Limits{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	_, err = Open(t.TempDir(), pods, Limits{})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != Foreign {
		t.Errorf("a folder: %v", err)
	}
}

func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "17", strings.Repeat("x", 1000))
	for name, limits := range map[string]Limits{"object": {ObjectBytes: 999}, "file": {FileBytes: 1000}} {
		_, _, err := read(path, pods, limits)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != TooLarge {
			t.Errorf("%s read: %v", name, err)
		}
		w, err := Create(path, header("18"), limits)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Add(make([]byte, 1000)) // Commit says it again
		if _, err := w.Commit(); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s written: %v", name, err)
		}
	}
	// Nothing of all this has touched the file.
	if objects, version, err := read(path, pods, Limits{}); err != nil || version != "17" || len(objects) != 1 {
		t.Errorf("read %d objects of version %q, %v", len(objects), version, err)
	}
	if _, err := Create(path, header(""), Limits{}); err == nil {
		t.Error("a file without a version was begun")
	}
}

func TestAFailedObjectEndsTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "17", "a")
	w, err := Create(path, header("18"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cannot be encoded")
	if err := w.Append(func([]byte) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("Append: %v", err)
	}
	if err := w.Add([]byte("b")); !errors.Is(err, broken) {
		t.Errorf("Add: %v", err)
	}
	if _, err := w.Commit(); !errors.Is(err, broken) {
		t.Errorf("Commit: %v", err)
	}
	w.Abort()
	if _, version, err := read(path, pods, Limits{}); err != nil || version != "17" {
		t.Errorf("version %q, %v", version, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// FuzzReader: whatever is in a file, reading ends, with the objects that were
// written or with a refusal.
func FuzzReader(f *testing.F) {
	path := filepath.Join(f.TempDir(), "f")
	written := write(f, path, "17", "a", "bc")
	if err := written.Advance("18", saved); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader("fuzzed", bytes.NewReader(data), int64(len(data)), pods, Limits{ObjectBytes: 1 << 16})
		total := 0
		for err == nil {
			var object []byte
			object, err = r.Next()
			total += len(object) + lengthBytes
		}
		if total > len(data)+lengthBytes {
			t.Fatalf("%d bytes out of %d", total, len(data))
		}
		var refused *RefusedError
		if errors.Is(err, io.EOF) {
			if r.Version() == "" || r.Header().Identity != pods {
				t.Fatalf("accepted with header %+v", r.Header())
			}
			return
		}
		if !errors.As(err, &refused) {
			t.Fatalf("neither the end nor a refusal: %v", err)
		}
	})
}
