package diskcache_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/client/internal/diskcache"
)

// A file is written whole, read whole, and refused if it is about something else.
func Example() {
	dir, err := os.MkdirTemp("", "diskcache-example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "pods.cache")
	about := diskcache.Identity{Server: "https://cluster:6443", Resource: "v1/pods", Encoding: "json"}

	if err := write(path, about, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"b"}}`); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read(path, about))

	var refused *diskcache.RefusedError
	about.Resource = "v1/nodes"
	if err := read(path, about); errors.As(err, &refused) {
		fmt.Println("refused:", refused.Reason)
	}
	// Output:
	// {"metadata":{"name":"a"}}
	// {"metadata":{"name":"b"}}
	// 2 objects show version 4711
	// <nil>
	// refused: foreign
}

func write(path string, about diskcache.Identity, objects ...string) error {
	w, err := diskcache.Create(path, diskcache.Header{Identity: about, Version: "4711", Saved: time.Now()}, diskcache.Limits{})
	if err != nil {
		return err
	}
	defer w.Abort() // does nothing after Commit
	for _, object := range objects {
		if err := w.Add([]byte(object)); err != nil {
			return err
		}
	}
	_, err = w.Commit()
	return err
}

func read(path string, about diskcache.Identity) error {
	r, err := diskcache.Open(path, about, diskcache.Limits{})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for {
		object, err := r.Next()
		if errors.Is(err, io.EOF) { // only now it is sure that the file is sound
			fmt.Println(r.Objects(), "objects show version", r.Version())
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", object)
	}
}
