package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const htmlPage = `<!DOCTYPE html>
<html><head><title>404 Not Found</title><style>body { color: red }</style></head>
<body><center><h1>404 Not&nbsp;Found</h1></center><hr><center>nginx/1.27</center>
<script>if (1 < 2) { track("/") }</script></body></html>`

// A page of something between the client and the API server is known as such, and
// nothing follows from it about what exists.
func TestUnexpectedResponses(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"a\" not found","reason":"NotFound","code":404}`
	for _, test := range []struct {
		name        string
		code        int
		contentType string
		body        string
		isStatus    bool
		check       func(error) bool
		message     string
	}{
		{"a Status", 404, "application/json", status, true, apierrors.IsNotFound, `pods "a" not found`},
		{"a page", 404, "text/html; charset=utf-8", htmlPage, false, isNothingKnown, `text/html, "404 Not Found 404 Not&nbsp;Found nginx/1.27")`},
		{"a gateway's JSON", 404, "application/json", `{"message":"no Route matched"}`, false, isNothingKnown, "no Route matched"},
		{"a load balancer's text", 404, "text/plain", "default backend - 404", false, isNothingKnown, "default backend - 404"},
		{"an empty 404", 404, "", "", false, isNothingKnown, "an empty body"},
		{"a page that is a conflict", 409, "text/html", "<b>conflict</b>", false, isNothingKnown, "conflict"},
		{"a page that is gone", 410, "text/html", "<b>gone</b>", false, isNothingKnown, "gone"},
		{"a login page", 401, "text/html", "<form>log in</form>", false, apierrors.IsUnauthorized, "log in"},
		{"a bad gateway", 502, "text/html", "<h1>Bad Gateway</h1>", false, apierrors.IsInternalError, "Bad Gateway"},
		{"a long page", 503, "text/plain", strings.Repeat("ä ", 1<<16), false, apierrors.IsServiceUnavailable, `ä..."`},
		{"noise", 503, "application/octet-stream", "\x00\xff\x1b[2J<", false, apierrors.IsServiceUnavailable, "[2J"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{test.contentType}
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			}})
			pods := For[*corev1.Pod](client).Namespace("ns")
			_, got := pods.Get(t.Context(), "a", metav1.GetOptions{})
			_, listed := pods.List(t.Context(), metav1.ListOptions{})
			_, watched := pods.Watch(t.Context(), metav1.ListOptions{})
			for verb, err := range map[string]error{"get": got, "list": listed, "watch": watched} {
				if IsStatus(fmt.Errorf("wrapped: %w", err)) != test.isStatus || !test.check(err) {
					t.Errorf("%s: IsStatus %v, %v", verb, IsStatus(err), err)
				}
				if !strings.Contains(err.Error(), test.message) || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("%s: message %q", verb, err)
				}
				var unexpected *UnexpectedResponseError
				if errors.As(err, &unexpected) == test.isStatus || !test.isStatus && unexpected.Code != test.code {
					t.Errorf("%s: %#v", verb, err)
				}
			}
		})
	}
}

// kube-apiserver answers so for a resource that it does not serve, and a server in Go
// between it and the client for everything: that is no proof that an object is gone.
func TestPlainNotFoundPageIsAboutResourcesOnly(t *testing.T) {
	client, _ := serve(t, Options{}, answerWithCode(404, "text/plain; charset=utf-8", "404 page not found\n"))
	pods := For[*corev1.Pod](client).Namespace("ns")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	_, listed := pods.List(t.Context(), metav1.ListOptions{})
	_, watched := pods.Watch(t.Context(), metav1.ListOptions{})
	for verb, err := range map[string]error{"list": listed, "watch": watched} {
		if IsStatus(err) || !apierrors.IsNotFound(err) || !errors.As(err, new(*UnexpectedResponseError)) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	_, got := pods.Get(t.Context(), "a", metav1.GetOptions{})
	_, created := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	_, updated := pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	_, patched := pods.Patch(t.Context(), "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	for verb, err := range map[string]error{
		"get": got, "create": created, "update": updated, "patch": patched,
		"delete":           pods.Delete(t.Context(), "a", metav1.DeleteOptions{}),
		"deletecollection": pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		if IsStatus(err) || !isNothingKnown(err) || !errors.As(err, new(*UnexpectedResponseError)) || IgnoreNotFound(err) == nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func isNothingKnown(err error) bool {
	return apierrors.IsServiceUnavailable(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) &&
		!apierrors.IsAlreadyExists(err) && !apierrors.IsGone(err) && !apierrors.IsResourceExpired(err) && apierrors.IsUnexpectedServerError(err)
}

// The answers to raw requests are distinguished in the same way.
func TestResponseError(t *testing.T) {
	for _, test := range []struct {
		code              int
		contentType, body string
		check             func(error) bool
	}{
		{200, "text/plain", "ok", func(err error) bool { return err == nil }},
		{403, "application/json", `{"kind":"Status","status":"Failure","reason":"Forbidden"}`, func(err error) bool { return apierrors.IsForbidden(err) && IsStatus(err) }},
		{404, "text/html", htmlPage, func(err error) bool { return isNothingKnown(err) && !IsStatus(err) }},
	} {
		client, _ := serve(t, Options{}, answerWithCode(test.code, test.contentType, test.body))
		resp, err := client.Raw(t.Context(), RawRequest{Path: "/readyz"})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := ResponseError(resp, body); !test.check(err) {
			t.Errorf("%d %s: %v", test.code, test.contentType, err)
		}
	}
}

// A login page is no success, not even of a delete.
func TestPageThatIsASuccess(t *testing.T) {
	for version, opts := range httpVersions {
		t.Run(version, func(t *testing.T) {
			client, _ := serve(t, opts, answerWithCode(200, "text/html", "<h1>Log in</h1>"))
			pods := For[*corev1.Pod](client).Namespace("ns")
			_, got := pods.Get(t.Context(), "a", metav1.GetOptions{})
			_, listed := pods.List(t.Context(), metav1.ListOptions{})
			_, watched := pods.Watch(t.Context(), metav1.ListOptions{})
			_, different := pods.Difference(t.Context(), nil, metav1.ListOptions{})
			_, discovered := pods.Served(t.Context())
			for verb, err := range map[string]error{"get": got, "list": listed, "watch": watched, "difference": different, "discover": discovered,
				"delete":           pods.Delete(t.Context(), "a", metav1.DeleteOptions{}),
				"deletecollection": pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})} {
				var unexpected *UnexpectedResponseError
				if !errors.As(err, &unexpected) || unexpected.Code != 200 || unexpected.Excerpt != "Log in" || IsStatus(err) || !apierrors.IsServiceUnavailable(err) {
					t.Errorf("%s: %v", verb, err)
				}
			}
			// As a 404, it may be the page of a proxy that passes lists and does not know this path.
			requests := client.Stats().Requests
			if _, again := pods.Difference(t.Context(), nil, metav1.ListOptions{}); !errors.Is(different, ErrNoDifference) || !errors.Is(again, ErrNoDifference) || client.Stats().Requests != requests {
				t.Errorf("the difference is asked for again: %v after %v", again, different)
			}
			if client.differenceRefusals.has(For[*corev1.ConfigMap](client).differenceScope()) {
				t.Error("differences are switched off for all resources")
			}
		})
	}
}

// A delete may be answered with nothing at all.
func TestEmptySuccess(t *testing.T) {
	client, _ := serve(t, Options{}, answerWithCode(200, "text/plain", ""))
	if err := For[*corev1.Pod](client).Namespace("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// A server is not taken for one without differences because of a proxy's page.
func TestPageDoesNotSwitchDifferencesOff(t *testing.T) {
	client, _ := serve(t, Options{}, answerWithCode(404, "text/html", htmlPage))
	if _, err := For[*corev1.Pod](client).Difference(t.Context(), nil, metav1.ListOptions{}); !errors.Is(err, ErrNoDifference) {
		t.Errorf("got %v", err)
	}
	if client.differenceRefusals.has(For[*corev1.ConfigMap](client).differenceScope()) {
		t.Error("differences are switched off for all resources")
	}
}

func answerWithCode(code int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}
