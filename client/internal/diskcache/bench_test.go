package diskcache

import (
	"errors"
	"io"
	"path/filepath"
	"testing"
)

const (
	benchObjects = 20_000
	benchBytes   = 1_000 // about a pod
)

func BenchmarkWrite(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	object := make([]byte, benchBytes)
	b.SetBytes(benchObjects * benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		w, err := Create(path, header("17"), Limits{})
		if err != nil {
			b.Fatal(err)
		}
		for range benchObjects {
			if err := w.Add(object); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	objects := make([]string, benchObjects)
	for i := range objects {
		objects[i] = string(make([]byte, benchBytes))
	}
	write(b, path, "17", objects...)
	b.SetBytes(benchObjects * benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(path, pods, Limits{})
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, io.EOF) || r.Objects() != benchObjects {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
