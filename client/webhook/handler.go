package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"reflect"
	"runtime/debug"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/client"
)

// Default bounds of bodies. An object has at most 3 MiB, and a review of an
// update holds two; a conversion holds all objects of a list.
const (
	DefaultMaxAdmissionBytes  = 7 << 20
	DefaultMaxConversionBytes = 128 << 20
)

// Handler answers the reviews of one webhook. Validate, Mutate and Convert make
// it; one that they have not made answers each review with an error. It may be served by any HTTP server; a [Server] adds TLS, deadlines and a
// bound on how many reviews run at once.
type Handler struct {
	// MaxBodyBytes bounds the body of a review. Set it before the handler
	// serves. Default, also if it is not positive: DefaultMaxAdmissionBytes or
	// DefaultMaxConversionBytes.
	MaxBodyBytes int64

	invalid error // why the handler cannot serve; nil if it can
	review  func(ctx context.Context, body []byte) (answer any, err error)
	maxBody int64 // the default of MaxBodyBytes
}

// errNotMade is the error of a Handler that is not made by this package.
var errNotMade = errors.New("this webhook.Handler has no function: make it by Validate, Mutate or Convert")

// badReview is an error in what the client sent.
type badReview struct{ err error }

// Error implements error.
func (e badReview) Error() string { return e.err.Error() }

// ServeHTTP implements http.Handler. What is no answer of the webhook, because
// the review cannot be read, or the function ran out of time or panicked, is an
// HTTP error: then the API server does what the webhook's failurePolicy says.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := withCallersTimeout(r)
	defer cancel()
	if h.invalid != nil {
		http.Error(w, h.invalid.Error(), http.StatusInternalServerError)
		return
	}
	if h.review == nil {
		http.Error(w, errNotMade.Error(), http.StatusInternalServerError)
		return
	}
	body, code, err := h.read(w, r)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	answer, err := h.call(ctx, body)
	if err == nil {
		body, err = json.Marshal(answer)
	}
	switch {
	case errors.As(err, new(badReview)):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		logger(ctx).Warn("a review failed", "path", r.URL.Path, "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client has gone
	}
}

func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, code int, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("reviews are sent with POST, not %s", r.Method)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("reviews are application/json, not %q", r.Header.Get("Content-Type"))
	}
	limit := h.MaxBodyBytes
	if limit <= 0 {
		limit = h.maxBody
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review has more than %d bytes", limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("reading the review: %w", err)
	}
	return body, 0, nil
}

// call contains panics of the function.
func (h *Handler) call(ctx context.Context, body []byte) (answer any, err error) {
	defer func() {
		if r := recover(); r != nil {
			countPanic(ctx)
			logger(ctx).Error("a webhook panicked", "panic", r, "stack", string(debug.Stack()))
			err = errors.New("the webhook panicked")
		}
	}()
	return h.review(ctx, body)
}

// withCallersTimeout adds the time that the API server waits: it says so as
// ?timeout=10s.
func withCallersTimeout(r *http.Request) (context.Context, context.CancelFunc) {
	if wait, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && wait > 0 {
		return context.WithTimeout(r.Context(), wait)
	}
	return r.Context(), func() {}
}

type loggerKey struct{}

// logger returns that of the Server.
func logger(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok {
		return l
	}
	return slog.Default()
}

type countersKey struct{}

// countPanic counts a panic that is contained here, if a Server serves the Handler.
func countPanic(ctx context.Context) {
	if counts, ok := ctx.Value(countersKey{}).(*counters); ok {
		counts.panics.Add(1)
	}
}

// checkType returns an error if objects of the type cannot be made.
func checkType[T client.Object]() error {
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Pointer {
		return fmt.Errorf("objects of %v cannot be decoded: use a pointer to a struct", t)
	}
	return nil
}

// decode returns the object in data; nil if there is none.
func decode[T client.Object](data []byte) (obj T, err error) {
	if len(data) == 0 || string(data) == "null" {
		return obj, nil
	}
	made := reflect.New(reflect.TypeFor[T]().Elem()).Interface()
	if err := unmarshal(data, made); err != nil {
		return obj, err
	}
	return made.(T), nil
}

// unmarshal matches the names of fields as API servers do: by case. The decoder of
// encoding/json would take "REPLICAS", which the API server prunes or ignores, for
// "replicas", and the webhook would decide about a value that is not the object's.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
