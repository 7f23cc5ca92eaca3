package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// errNoSuchPath is what Kubernetes says about a path or a kind that nobody
// serves.
func errNoSuchPath() error {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

func errMethod(res *resource.Resource, verb string) error {
	return apierrors.NewMethodNotSupported(res.GroupResource(), verb)
}

func errNotAcceptable(accepted string) error {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+accepted)
}

func failure(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// tooManyRequests asks the client to come back in so many seconds.
func tooManyRequests(message string, retryAfterSeconds int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
		Reason: metav1.StatusReasonTooManyRequests, Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// tooLarge is the answer to a revision that has not been reached in time. The
// cause tells clients that it is the revision and not the server's load.
func tooLarge(requested, current storage.Revision) error {
	err := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", requested, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// expired is the answer to a revision whose history is gone.
func expired(requested, oldest storage.Revision) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", requested, oldest))
}

// statusOf returns the Status that describes any error to a client. Errors
// that are not meant for clients become a 500 without losing their text.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status := api.Status()
		return completeStatus(&status)
	}
	status := storageStatus(err)
	if status == nil {
		s := apierrors.NewInternalError(err).Status()
		status = &s
	}
	return completeStatus(status)
}

func storageStatus(err error) *metav1.Status {
	var translated error
	switch {
	case errors.Is(err, storage.ErrCompacted):
		translated = apierrors.NewResourceExpired("the requested resource version is too old: " + err.Error())
	case errors.Is(err, storage.ErrFutureRevision):
		translated = tooLargeUnknown(err)
	case errors.Is(err, storage.ErrTooLarge):
		translated = apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, storage.ErrConflict):
		translated = failure(http.StatusConflict, metav1.StatusReasonConflict,
			"the object has been modified; please apply your changes to the latest version and try again")
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrClosed):
		translated = apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		translated = apierrors.NewTimeoutError("the request did not finish within its time limit", 1)
	case errors.Is(err, context.Canceled):
		translated = apierrors.NewServiceUnavailable("the request was abandoned or the server is shutting down")
	default:
		return nil
	}
	var api apierrors.APIStatus
	if !errors.As(translated, &api) {
		return nil
	}
	status := api.Status()
	return &status
}

func tooLargeUnknown(err error) error {
	timeout := apierrors.NewTimeoutError("Too large resource version: "+err.Error(), 1)
	timeout.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return timeout
}

// asksTooMuch says that it is the client who named a version that does not
// exist yet: nothing that operators could mend.
func asksTooMuch(s *metav1.Status) bool {
	return s.Details != nil && len(s.Details.Causes) > 0 && s.Details.Causes[0].Type == metav1.CauseTypeResourceVersionTooLarge
}

// ofUnknownSchema says that a client applied what the schema does not know, which
// Kubernetes answers with a 500 that has no reason.
func ofUnknownSchema(s *metav1.Status) bool { return s.Reason == metav1.StatusReasonUnknown }

func completeStatus(s *metav1.Status) *metav1.Status {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return s
}

// writeError answers with the Status of err, in protobuf or YAML if that is
// what the client reads and in JSON otherwise: a client whose Accept cannot be
// met must still learn why.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if info := infoFrom(r.Context()); info != nil && status.Code >= 500 && !asksTooMuch(status) && !ofUnknownSchema(status) {
		info.err = err
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	form, negotiated := negotiate(r, anyForm)
	if negotiated != nil {
		form = accepted{media: mediaJSON}
	}
	form.as = asObject
	body, encodeErr := encodeObject(form, status)
	if encodeErr != nil {
		http.Error(w, status.Message, int(status.Code))
		return
	}
	writeBody(w, r, int(status.Code), form.contentType(), body)
}
