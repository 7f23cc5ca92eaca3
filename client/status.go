package client

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/levelwire/levelwire/client/internal/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxErrorBody bounds what is read of a refusal.
const maxErrorBody = 1 << 20

// statusError makes a refusal the error that apierrors understands: from the
// Status in its body, or from the HTTP status if something else answered, a
// proxy for instance. It reads and closes the body, and says how much there
// was.
func statusError(resp *http.Response, q *request) (int64, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close() // the status line is what counts
	if err != nil {
		body = nil
	}
	after := retryAfter(resp.Header, time.Now())
	if status := codec.DecodeFailure(codec.EncodingOf(resp.Header.Get("Content-Type")), body); status != nil {
		if status.Code == 0 {
			status.Code = int32(resp.StatusCode)
		}
		if after > 0 {
			if status.Details == nil {
				status.Details = &metav1.StatusDetails{}
			}
			if status.Details.RetryAfterSeconds == 0 {
				status.Details.RetryAfterSeconds = int32(after)
			}
		}
		return int64(len(body)), &apierrors.StatusError{ErrStatus: *status}
	}
	return int64(len(body)), apierrors.NewGenericServerResponse(resp.StatusCode, q.method, q.gvr.GroupResource(),
		q.name, strings.TrimSpace(string(body)), after, true)
}

// retryAfter reads the header (RFC 9110, 10.2.3) in seconds, rounded up; 0 if
// there is none.
func retryAfter(h http.Header, now time.Time) int {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(v); err == nil {
		return min(max(seconds, 0), int(24*time.Hour/time.Second))
	}
	t, err := http.ParseTime(v)
	if err != nil || !t.After(now) {
		return 0
	}
	return int(min(t.Sub(now), 24*time.Hour)/time.Second) + 1
}
