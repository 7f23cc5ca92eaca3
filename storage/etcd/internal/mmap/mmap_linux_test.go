package mmap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDroppedPagesLeaveMemoryAndComeBack(t *testing.T) {
	const size = 64 << 20
	content := bytes.Repeat([]byte("levelwire, 16 B."), size/16)
	path := filepath.Join(t.TempDir(), "a file with spaces")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(data); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{path, link} {
		if !bytes.Equal(data, content) {
			t.Fatal("the mapping has another content than the file")
		}
		before := resident(t)
		if before < size {
			t.Fatalf("%d bytes are resident after %d were read", before, size)
		}
		if found, err := Size(name); err != nil || found != size {
			t.Errorf("Size(%s) is %d, %v, want %d", name, found, err, size)
		}
		dropped, err := DropPages(name)
		if err != nil || dropped != size {
			t.Fatalf("DropPages(%s) is %d, %v, want %d", name, dropped, err, size)
		}
		if after := resident(t); after > before-size/2 {
			t.Errorf("%d bytes are resident after DropPages, were %d", after, before)
		}
	}
	if !bytes.Equal(data, content) {
		t.Error("the content did not come back")
	}
	unmapped := filepath.Join(t.TempDir(), "unmapped")
	if err := os.WriteFile(unmapped, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Size(unmapped); err != nil || found != 0 {
		t.Errorf("Size of a file that is not mapped is %d, %v", found, err)
	}
}

func resident(t *testing.T) int64 {
	t.Helper()
	n, err := Resident()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOnlySharedMappingsOfTheFileAreDropped(t *testing.T) {
	const file = "/data/member/snap/db"
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"7f0000000000-7f0280000000 r--s 00000000 08:02 135522 " + file, true},
		{"7f0000000000-7f0280000000 r--p 00000000 08:02 135522 " + file, false},
		{"7f0000000000-7f0280000000 r--s 00000000 08:02 135522 /other" + file, false},
		{"7f0000000000-7f0280000000 r--s 00000000 08:02 135522 /a dir " + file, false},
		{"7f0000000000-7f0280000000 r--s 00000000 08:02 135522 " + file + " (deleted)", false},
		{"7f0000000000-7f0280000000 rw-s 00000000 00:00 0", false},
		{"", false},
	} {
		r, ok, err := parse([]byte(c.line), file)
		if err != nil || ok != c.ok || ok && (r != span{0x7f0000000000, 0x7f0280000000}) {
			t.Errorf("%q is read as %x, %v, %v", c.line, r, ok, err)
		}
	}
	for _, line := range []string{"x-1 r--s 0 0 0 " + file, "1-x r--s 0 0 0 " + file, "2-1 r--s 0 0 0 " + file} {
		if _, _, err := parse([]byte(line), file); err == nil {
			t.Errorf("%q is read without an error", line)
		}
	}
}
