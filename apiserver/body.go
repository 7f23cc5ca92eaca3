package apiserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// readBody returns the whole body of a request. A body over the limit is a
// 413, one that breaks off a 400.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := s.config.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, bodyTooLarge(limit)
	case err != nil:
		return nil, badRequest("the request body cannot be read: %v", err)
	}
	return body, nil
}

func bodyTooLarge(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}

// bodyType returns the media type of a request body without its parameters.
// No header means JSON, as with Kubernetes.
func bodyType(r *http.Request) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return mediaNames[mediaJSON], nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", errUnsupportedBody(header)
	}
	return kind, nil
}

func errUnsupportedBody(got string) error {
	return failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType", fmt.Sprintf(
		"the body of the request was in an unknown format (%s) - accepted media types include: %s", got, anyForm.describe()))
}
