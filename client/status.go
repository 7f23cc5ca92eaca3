package client

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/levelwire/levelwire/client/internal/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxErrorBody bounds what is read of a refusal.
const maxErrorBody = 1 << 20

// ResponseError returns the error that a response is, for callers of [Client.Raw]: nil
// for a success, an *apierrors.StatusError with the Status in the body, or an
// *UnexpectedResponseError if there is none. body is what was read of it.
func ResponseError(resp *http.Response, body []byte) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	q := &request{}
	if resp.Request != nil {
		q.method = resp.Request.Method
	}
	return responseError(resp, q, body)
}

// statusError makes a refusal an error. It reads and closes the body, and returns its
// length.
func statusError(resp *http.Response, q *request) (int64, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close() // the status line is what counts
	if err != nil {
		body = nil
	}
	return int64(len(body)), responseError(resp, q, body)
}

// responseError makes a refusal the error that apierrors understands.
func responseError(resp *http.Response, q *request, body []byte) error {
	after := retryAfter(resp.Header, time.Now())
	status := codec.DecodeFailure(codec.EncodingOf(resp.Header.Get("Content-Type")), body)
	if status == nil {
		return unexpectedResponse(resp, q, body, after)
	}
	if status.Code == 0 {
		status.Code = int32(resp.StatusCode)
	}
	if status.Message == "" { // an error without a text would be useless
		status.Message = fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if after > 0 {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		if status.Details.RetryAfterSeconds == 0 {
			status.Details.RetryAfterSeconds = int32(after)
		}
	}
	return &apierrors.StatusError{ErrStatus: *status}
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

// UnexpectedResponseError is a refusal without a Status, or a success that is neither
// JSON nor protobuf, or, of a list, another than 200: usually the page of a proxy, a load balancer or a web server
// between the client and the API server. It says nothing about objects or resources.
//
// It wraps an *apierrors.StatusError with the HTTP status as its code, so that the
// functions of apierrors can be used: 401 is Unauthorized, 403 Forbidden, 429
// TooManyRequests and so on. But 404, 409, 410 and 422, from which a program would
// conclude what exists, and all successes, are ServiceUnavailable: apierrors.IsNotFound is false for
// a proxy's page. The one exception is the plain text "404 page not found", which
// is what kube-apiserver itself answers for a resource that it does not serve:
// apierrors.IsNotFound is true for it if it is the answer to a list, to a watch, or to
// what [Client.Raw] sent. A proxy written in Go may answer the same, so confirm it by
// [Resource.Served] before you act on it. As the answer to a request for one object, or
// to a write, it does not say that the object is gone, and is ServiceUnavailable, too.
type UnexpectedResponseError struct {
	Code        int    // HTTP status
	ContentType string // media type of the response, perhaps empty
	Excerpt     string // the beginning of the response's text, without markup, on one line

	status       *apierrors.StatusError
	otherSuccess bool // than the one that the request can have
}

func (e *UnexpectedResponseError) Error() string {
	media := e.ContentType
	if media == "" {
		media = "no content type"
	}
	text := "an empty body"
	if e.Excerpt != "" {
		text = fmt.Sprintf("%q", e.Excerpt)
	}
	missing := "without a Status"
	switch {
	case e.otherSuccess:
		missing = "in place of 200"
	case e.Code < http.StatusMultipleChoices:
		missing = "without an object"
	}
	return fmt.Sprintf("%s (HTTP %d %s, perhaps not from the API server: %s, %s)",
		e.status.Error(), e.Code, missing, media, text)
}

// Unwrap returns the *apierrors.StatusError.
func (e *UnexpectedResponseError) Unwrap() error { return e.status }

// IsStatus reports whether err is, or wraps, an *apierrors.StatusError whose Status
// was sent, as a response or within a watch. It is false if the client derived the
// error from the HTTP status of a response that had none; see
// [UnexpectedResponseError].
func IsStatus(err error) bool {
	var status *apierrors.StatusError
	var unexpected *UnexpectedResponseError
	return errors.As(err, &status) && !errors.As(err, &unexpected)
}

// unexpectedResponse is the error for an answer in whose body there is neither an
// object nor a Status.
func unexpectedResponse(resp *http.Response, q *request, body []byte, retryAfterSeconds int) error {
	media := resp.Header.Get("Content-Type")
	if parsed, _, err := mime.ParseMediaType(media); err == nil {
		media = parsed
	}
	text := excerpt(body)
	status := apierrors.NewGenericServerResponse(resp.StatusCode, q.method, q.gvr.GroupResource(), q.name, text, retryAfterSeconds, true)
	switch resp.StatusCode {
	case http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity:
		status.ErrStatus.Reason = metav1.StatusReasonServiceUnavailable
	case http.StatusNotFound:
		if media != "text/plain" || text != goNotFoundPage || !q.ofResources() {
			status.ErrStatus.Reason = metav1.StatusReasonServiceUnavailable
		}
	default:
		if q.isOtherSuccess(resp.StatusCode) {
			status.ErrStatus.Reason = metav1.StatusReasonServiceUnavailable
			status.ErrStatus.Message = fmt.Sprintf("the answer to the list is %d %s, so it may not be the list, or not all of it", resp.StatusCode, http.StatusText(resp.StatusCode))
		} else if resp.StatusCode < http.StatusMultipleChoices {
			status.ErrStatus.Reason = metav1.StatusReasonServiceUnavailable
			status.ErrStatus.Message = "the answer is neither JSON nor protobuf: is this the address of an API server?"
		}
	}
	if message := redirectMessage(resp); message != "" {
		status.ErrStatus.Message = message
	}
	return &UnexpectedResponseError{Code: resp.StatusCode, ContentType: media, Excerpt: text, status: status, otherSuccess: q.isOtherSuccess(resp.StatusCode)}
}

// ofResources reports whether the request is for a resource or a path, and not for one
// object: list, watch, discovery and what [Client.Raw] sends.
func (q *request) ofResources() bool {
	switch q.verb {
	case "list", "watch", "difference", "discover", "raw":
		return true
	}
	return q.verb == "" // of ResponseError
}

// goNotFoundPage is what http.NotFound writes, and with it kube-apiserver for a
// path that none of its handlers serves.
const goNotFoundPage = "404 page not found"

// maxExcerpt is how many bytes of a page an error carries, and maxPage how many it
// chooses them from.
const (
	maxExcerpt = 200
	maxPage    = 8 * maxExcerpt
)

// excerpt returns the beginning of a page's text on one line: white space is
// folded, and what is between angle brackets, or in a style or script element, is
// left out.
func excerpt(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxPage)]), "")
	var b strings.Builder
	for len(text) > 0 && b.Len() < maxExcerpt {
		if text[0] == '<' {
			text = afterElement(text)
			b.WriteByte(' ')
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if r != ' ' || b.Len() > 0 && !strings.HasSuffix(b.String(), " ") {
			b.WriteRune(r)
		}
	}
	short := strings.Join(strings.Fields(b.String()), " ")
	if strings.TrimSpace(text) != "" {
		short += "..."
	}
	return short
}

// afterElement returns what follows the tag with which text begins, or, for one
// whose contents are no text, what follows the end tag.
func afterElement(text string) string {
	for _, name := range []string{"style", "script"} {
		if len(text) > len(name) && strings.EqualFold(text[1:1+len(name)], name) {
			if i := strings.Index(strings.ToLower(text), "</"+name); i >= 0 {
				text = text[i:]
			} else {
				return ""
			}
		}
	}
	_, rest, _ := strings.Cut(text, ">")
	return rest
}
