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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// ReadBody returns the whole body of a request. A body over the limit is a
// 413, one that breaks off a 400, and one that does not end within the
// request's time a 504. The request's record is asked whether the body may be kept, and
// whether the server works on the request now that the body is there.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	control := http.NewResponseController(w) // its errors mean that there are no deadlines, in tests
	if deadline, ok := r.Context().Deadline(); ok && r.ContentLength != 0 {
		_ = control.SetReadDeadline(deadline)
	}
	record := request.RecordFrom(r.Context())
	record.Task.Block() // until the admission is complete
	defer record.Task.Unblock()
	admission := record.Body
	if admission == nil {
		admission = admitAll{}
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength, admission)
	if err == nil {
		err = reserveDecoded(r, body, admission)
	}
	if err == nil && r.ContentLength != 0 {
		// The server's own look-out for the end of the connection, which begins
		// now, must not be disturbed. What did not come is still not waited for.
		_ = control.SetReadDeadline(time.Time{})
	}
	var over *http.MaxBytesError
	var refused *apierrors.StatusError
	switch {
	case errors.As(err, &refused): // by the admission
		return nil, err
	case errors.As(err, &over):
		return nil, bodyTooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return nil, errBodyLate()
	case err != nil:
		return nil, status.BadRequest("the request body cannot be read: %v", err)
	}
	if audit := record.Audit; audit != nil {
		audit.Body(r.Header.Get("Content-Type"), body)
	}
	return body, admission.Complete()
}

const (
	// elementBytes is about how much memory an element of a list takes when it is decoded: a container has a kilobyte,
	// however short it is in the body.
	elementBytes = 1 << 10
	// maxElements is how many a body may have. Those of 3 MiB have some ten thousand.
	maxElements = 150_000
	// smallBody is one that is not looked at, and decodedFactor how much more a body takes without being counted
	// when it is decoded.
	smallBody     = 4 << 10
	decodedFactor = 4
)

// reserveDecoded has what a body takes when it is decoded counted, if that is out of proportion: a million containers
// of three bytes each took a gigabyte.
func reserveDecoded(r *http.Request, body []byte, admission request.BodyAdmission) error {
	if len(body) < smallBody {
		return nil
	}
	mediaType, err := BodyMediaType(r)
	if err != nil {
		return nil //nolint:nilerr // what reads the body says so
	}
	n := resource.CountElements(mediaType, body)
	if n > maxElements {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has %d elements, the limit is %d", n, maxElements))
	}
	if more := n*elementBytes - decodedFactor*len(body); more > 0 {
		return admission.Reserve(more)
	}
	return nil
}

// DiscardBody reads the body of a request to its end, keeps nothing of it, and ends the
// time for reading. Its errors are those of ReadBody.
func DiscardBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		return bodyTooLarge(limit)
	}
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return bodyTooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errBodyLate()
	case err != nil:
		return status.BadRequest("the request body cannot be read: %v", err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // an error means that there are no deadlines, in tests
	return nil
}

// admitAll is the admission of requests without one.
type admitAll struct{}

func (admitAll) Reserve(int) error { return nil }
func (admitAll) Release(int)       {}
func (admitAll) Complete() error   { return nil }

const (
	// firstPiece is how much of a body has room from the beginning, whatever its length is
	// said to be; smallestPiece and largestPiece are how much more has room at a time.
	firstPiece    = 16 << 10
	smallestPiece = 4 << 10
	largestPiece  = 64 << 10
)

// readAll is io.ReadAll for bodies of which most are short, and some come slowly or never
// end. What has come is kept in pieces and joined at the end: room for all of a long body, made
// anew each time that it is too small, would be copied on the way, which takes milliseconds in
// which a processor does nothing else. The admission is asked before there is more room.
func readAll(body io.Reader, length int64, admission request.BodyAdmission) ([]byte, error) {
	size := int(min(max(length, 0), firstPiece)) + bytes.MinRead
	if err := admission.Reserve(size); err != nil {
		return nil, err
	}
	var full [][]byte // the pieces before the last one
	total := 0        // their length
	piece := make([]byte, 0, size)
	for {
		n, err := body.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		switch {
		case errors.Is(err, io.EOF):
			if len(full) == 0 {
				return piece, nil
			}
			return joined(append(full, piece), total+len(piece), admission)
		case err != nil:
			return nil, err
		case len(piece) < cap(piece):
			continue
		}
		full, total = append(full, piece), total+len(piece)
		size = min(max(total, smallestPiece), largestPiece) // twice as much as there is
		if left := length - int64(total); left > 0 && left < int64(size) {
			size = int(left) + bytes.MinRead
		}
		if err := admission.Reserve(size); err != nil {
			return nil, err
		}
		piece = make([]byte, 0, size)
	}
}

// joined returns all pieces as one. Until they have been copied, the body is in memory
// twice, and counts twice.
func joined(pieces [][]byte, total int, admission request.BodyAdmission) ([]byte, error) {
	if err := admission.Reserve(total); err != nil {
		return nil, err
	}
	all := make([]byte, 0, total)
	for i, piece := range pieces {
		all = append(all, piece...)
		pieces[i] = nil
		admission.Release(cap(piece))
	}
	return all, nil
}

func errBodyLate() error {
	return apierrors.NewTimeoutError("the request body did not arrive in time", 0)
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
		return "", UnsupportedMediaType()
	}
	return kind, nil
}

// ObjectMediaType is BodyMediaType for a body that is an object: the error for a type of which no
// object can be read is a 415, too.
func ObjectMediaType(r *http.Request) (string, error) {
	kind, err := BodyMediaType(r)
	if err == nil && !slices.Contains(mediaNames[:], kind) {
		err = UnsupportedMediaType()
	}
	return kind, err
}

// UnsupportedMediaType is the 415 for a body whose media type cannot be read.
func UnsupportedMediaType() error {
	return status.Failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+PlainOffer.describe())
}
