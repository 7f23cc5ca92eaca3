package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/jsonpatch"
)

// Request is what an API server asks about. It belongs to one call of the
// function and must not be used after it.
type Request[T client.Object] struct {
	// Operation is what the client does: admissionv1.Create, Update, Delete or
	// Connect.
	Operation admissionv1.Operation
	// Object is the object as it would be stored; nil for Delete.
	Object T
	// Old is the object as it is stored; nil for Create.
	Old T
	// DryRun: nothing will be stored, so the function must have no effects.
	DryRun bool
	// Admission is the whole request: the user, the names, the kinds, the
	// subresource.
	Admission *admissionv1.AdmissionRequest

	warnings []string
	audit    map[string]string
}

// Warn adds a warning that the API server shows to the client, whether or not
// the request is allowed. API servers cut what is longer than 256 bytes.
func (r *Request[T]) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds an annotation to the API server's audit event. The server puts the
// webhook's name before the key.
func (r *Request[T]) Audit(key, value string) {
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[key] = value
}

// AdmissionFunc decides on a request: nil allows it. An error denies it, with the
// error's text and code 403, or with its Status if it is an error of
// k8s.io/apimachinery/pkg/api/errors. When the context has ended it returns the
// context's error; that denies nothing, but the call counts as failed, and the
// webhook's failurePolicy decides. It is called by many goroutines at once.
type AdmissionFunc[T client.Object] func(ctx context.Context, r *Request[T]) error

// Validate returns the handler of a validating webhook for objects of type T,
// *unstructured.Unstructured included. Changes that the function makes to the
// object have no effect.
func Validate[T client.Object](validate AdmissionFunc[T]) *Handler {
	return newAdmission(validate, func(*admissionv1.AdmissionRequest, T, *admissionv1.AdmissionResponse) error { return nil })
}

// Mutate returns the handler of a mutating webhook for objects of type T,
// *unstructured.Unstructured included. The function changes the Object of the
// request; what it changes is sent as a JSON patch, and fields that T does not
// know stay as they are.
func Mutate[T client.Object](mutate AdmissionFunc[T]) *Handler {
	return newAdmission(mutate, addPatch[T])
}

// newAdmission returns a handler that decides by decide and completes what it
// allows.
func newAdmission[T client.Object](decide AdmissionFunc[T], complete func(*admissionv1.AdmissionRequest, T, *admissionv1.AdmissionResponse) error) *Handler {
	h := &Handler{MaxBodyBytes: DefaultMaxAdmissionBytes, maxBody: DefaultMaxAdmissionBytes, invalid: checkType[T]()}
	if decide == nil {
		h.invalid = errors.New("the webhook's function is nil")
	}
	h.review = func(ctx context.Context, body []byte) (any, error) {
		var review admissionv1.AdmissionReview
		request, err := readAdmission(body, &review)
		if err != nil {
			return nil, badReview{err}
		}
		r, err := typed[T](request)
		if err != nil {
			return nil, badReview{err}
		}
		response := &admissionv1.AdmissionResponse{UID: request.UID}
		switch err := decide(ctx, r); {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("out of time: %w", context.Cause(ctx))
		case err != nil:
			response.Result = denial(err)
		default:
			response.Allowed = true
			if err := complete(request, r.Object, response); err != nil {
				return nil, err
			}
		}
		response.Warnings, response.AuditAnnotations = r.warnings, r.audit
		return admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}, nil
	}
	return h
}

func readAdmission(body []byte, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionRequest, error) {
	if err := unmarshal(body, review); err != nil {
		return nil, fmt.Errorf("no AdmissionReview: %w", err)
	}
	if want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"); review.GroupVersionKind() != want {
		return nil, fmt.Errorf("got a review of %v, not %v: set admissionReviewVersions to [v1]", review.GroupVersionKind(), want)
	}
	if review.Request == nil {
		return nil, errors.New("the AdmissionReview has no request")
	}
	return review.Request, nil
}

func typed[T client.Object](request *admissionv1.AdmissionRequest) (*Request[T], error) {
	r := &Request[T]{Operation: request.Operation, DryRun: request.DryRun != nil && *request.DryRun, Admission: request}
	var err error
	if r.Object, err = decode[T](request.Object.Raw); err != nil {
		return nil, fmt.Errorf("the object is no %T: %w", r.Object, err)
	}
	if r.Old, err = decode[T](request.OldObject.Raw); err != nil {
		return nil, fmt.Errorf("the old object is no %T: %w", r.Old, err)
	}
	return r, nil
}

// denial is the Status of an error.
func denial(err error) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return &s
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
}

// addPatch adds the JSON patch that turns the request's object into changed.
func addPatch[T client.Object](request *admissionv1.AdmissionRequest, changed T, response *admissionv1.AdmissionResponse) error {
	if len(request.Object.Raw) == 0 || string(request.Object.Raw) == "null" {
		return nil // a deletion has no object to change
	}
	document, err := jsonpatch.Decode(request.Object.Raw)
	if err != nil {
		return err
	}
	unchanged, err := decode[T](request.Object.Raw)
	if err != nil {
		return err
	}
	before, err := treeOf(unchanged)
	if err != nil {
		return err
	}
	after, err := treeOf(changed)
	if err != nil {
		return err
	}
	operations := jsonpatch.Diff(document, jsonpatch.CarryOver(document, before, after))
	if len(operations) == 0 {
		return nil
	}
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	response.Patch, err = json.Marshal(operations)
	return err
}

func treeOf(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("the changed object cannot be encoded: %w", err)
	}
	return jsonpatch.Decode(data)
}
