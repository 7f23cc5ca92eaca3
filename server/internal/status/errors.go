// Package status describes failures the way the Kubernetes API does: as errors
// that carry a metav1.Status. It makes those errors, and turns the errors of
// other layers into the Status that a client sees. It knows no HTTP beyond the
// numbers of the status codes.
package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Failure returns an error with any code, reason and message.
func Failure(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// BadRequest is the 400 for a request that is malformed or contradicts itself.
func BadRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// NoSuchPath is the 404 for a path or a kind that is not served, in the words
// of Kubernetes.
func NoSuchPath() error {
	return notRouted(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// notRouted is Failure for a request that reaches no resource. Of those Kubernetes has details, and
// nothing in them.
func notRouted(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	}}
}

// MethodNotSupported is the 405 for a verb that a resource does not offer, in the words of Kubernetes, which has
// others for custom resources.
func MethodNotSupported(res *resource.Resource, verb string) error {
	if res.Stored().Mixed {
		return apierrors.NewMethodNotSupported(res.GroupResource(), verb)
	}
	return MethodNotAllowed()
}

// MethodNotAllowed is the 405 for a method that a path does not have.
func MethodNotAllowed() error {
	return notRouted(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
}

// NotAcceptable is the 406 for an Accept header that names none of the media
// types that are offered.
func NotAcceptable(accepted string) error {
	return Failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+accepted)
}

// TooManyRequests is the 429 that asks the client to come back in so many
// seconds.
func TooManyRequests(message string, retryAfterSeconds int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
		Reason: metav1.StatusReasonTooManyRequests, Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds},
	}}
}

// Starting is the 503 of a server that does not know yet which custom resources there
// are.
func Starting() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "the server is starting: it has not read all definitions of custom resources yet; try again",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}
}

// ShuttingDown is the 429 that makes clients come back, to the server that takes
// this one's place.
func ShuttingDown() error { return TooManyRequests("the server is shutting down", 1) }

// ResourceVersionTooLarge is the 504 for a revision that the server did not
// reach in time. Its cause lets clients see that the revision is the reason, and
// not the server's load.
func ResourceVersionTooLarge(requested, current storage.Revision) error {
	return resourceVersionTooLarge(fmt.Sprintf("Too large resource version: %d, current: %d", requested, current))
}

func resourceVersionTooLarge(message string) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(message, 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// Expired is the 410 for a revision whose history is gone.
func Expired(requested, oldest storage.Revision) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", requested, oldest))
}

// Of returns the Status that describes any error to a client. An error that
// no layer has meant for clients becomes a 500 that keeps its text.
func Of(err error) *metav1.Status {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = ofStorage(err)
	}
	s := api.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return &s
}

// ofStorage translates the errors of the store and of contexts.
func ofStorage(err error) apierrors.APIStatus {
	switch {
	case errors.Is(err, storage.ErrCompacted):
		return apierrors.NewResourceExpired("the requested resource version is too old: " + err.Error())
	case errors.Is(err, storage.ErrFutureRevision):
		return resourceVersionTooLarge("Too large resource version: " + err.Error())
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.Is(err, storage.ErrConflict):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
			Message: "the object has been modified; please apply your changes to the latest version and try again",
		}}
	case errors.Is(err, storage.ErrReadOnly):
		return ReadOnly()
	case errors.Is(err, storage.ErrFull):
		return InsufficientStorage(err.Error())
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrClosed):
		return apierrors.NewServiceUnavailable(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request did not finish within its time limit", 1)
	case errors.Is(err, context.Canceled):
		return apierrors.NewServiceUnavailable("the request was abandoned or the server is shutting down")
	}
	return apierrors.NewInternalError(err)
}

// IsInsufficientStorage reports whether the store had no room for a write.
func IsInsufficientStorage(err error) bool {
	return errors.Is(err, storage.ErrFull) || apierrors.ReasonForError(err) == reasonInsufficientStorage
}

// reasonInsufficientStorage is not among those of Kubernetes, which has a 500 for it.
const reasonInsufficientStorage metav1.StatusReason = "InsufficientStorage"

// ReadOnly is the answer of a read-only server to a write, whatever it is about.
func ReadOnly() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "this server is read-only: it shows a recording, or a snapshot, of another one",
	}}
}

// InsufficientStorage is the answer to a write that the store has no room for. It
// does not say when to try again, since an operator has to make room first.
func InsufficientStorage(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: reasonInsufficientStorage, Message: message,
	}}
}

// IsResourceVersionTooLarge reports whether the client named a version that
// does not exist yet: nothing that operators could repair.
func IsResourceVersionTooLarge(s *metav1.Status) bool {
	return s.Details != nil && len(s.Details.Causes) > 0 && s.Details.Causes[0].Type == metav1.CauseTypeResourceVersionTooLarge
}

// IsUnknownSchema reports whether a client applied fields that the schema does
// not know. Kubernetes answers that with a 500 that has no reason.
func IsUnknownSchema(s *metav1.Status) bool { return s.Reason == metav1.StatusReasonUnknown }
