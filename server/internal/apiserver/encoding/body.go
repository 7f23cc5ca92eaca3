package encoding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/levelwire/levelwire/server/internal/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReadBody returns the whole body of a request. A body over the limit is a
// 413, one that breaks off a 400, and one that does not end within the
// request's time a 504: a client that sends nothing keeps no slot for ever.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	control := http.NewResponseController(w) // its errors mean that there are no deadlines, in tests
	if deadline, ok := r.Context().Deadline(); ok && r.ContentLength != 0 {
		_ = control.SetReadDeadline(deadline)
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	if err == nil && r.ContentLength != 0 {
		// The server's own look-out for the end of the connection, which begins
		// now, must not be disturbed. What did not come is still not waited for.
		_ = control.SetReadDeadline(time.Time{})
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, bodyTooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return nil, apierrors.NewTimeoutError("the request body did not arrive in time", 0)
	case err != nil:
		return nil, status.BadRequest("the request body cannot be read: %v", err)
	}
	return body, nil
}

// readAll is io.ReadAll with room for length bytes from the beginning, unless
// that is unknown: it grows in steps, each of which copies what was read so far.
func readAll(body io.Reader, length int64) ([]byte, error) {
	const mostAtOnce = 256 << 10 // a client that only says so gets no more
	buf := make([]byte, 0, min(max(length, 0), mostAtOnce)+bytes.MinRead)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

func bodyTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}

// BodyMediaType returns the media type of a request body without its parameters.
// No header means JSON, as with Kubernetes.
func BodyMediaType(r *http.Request) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return mediaNames[JSON], nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", UnsupportedMediaType(header)
	}
	return kind, nil
}

// UnsupportedMediaType is the 415 for a body whose media type cannot be read.
func UnsupportedMediaType(got string) error {
	return status.Failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", fmt.Sprintf(
		"the body of the request was in an unknown format (%s) - accepted media types include: %s", got, PlainOffer.describe()))
}
