package podstream

import (
	"errors"
	"io"
	"sync"
)

// copyError is the first error of the caller's own readers and writers. It is safe
// for concurrent use.
type copyError struct {
	mu  sync.Mutex
	err error
}

func (c *copyError) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *copyError) first() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *copyError) reader(r io.Reader) io.Reader {
	if r == nil {
		return nil
	}
	return notingReader{c, r}
}

func (c *copyError) writer(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return notingWriter{c, w}
}

type notingReader struct {
	to *copyError
	r  io.Reader
}

func (r notingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.to.note(err)
	}
	return n, err
}

type notingWriter struct {
	to *copyError
	w  io.Writer
}

func (w notingWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.to.note(err)
	}
	return n, err
}
