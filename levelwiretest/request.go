package levelwiretest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/levelwire/levelwire/internal/difference"
)

// describe says what a request asks for, and returns one to send in its place, as
// its body has been read.
func describe(req *http.Request) (Request, *http.Request, error) {
	seen := Request{Path: req.URL.Path, Query: req.URL.RawQuery, ContentType: req.Header.Get("Content-Type"), Accept: req.Header.Get("Accept")}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if closed := req.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return seen, nil, err
		}
		seen.Body = body
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	seen.parsePath(req.URL.Path)
	query := req.URL.Query()
	seen.Verb = verbOf(req, query, seen)
	seen.InitialEvents = seen.Verb == "watch" && isTrue(query, "sendInitialEvents")
	return seen, req, nil
}

// parsePath reads /api/v1/... and /apis/GROUP/VERSION/..., behind whatever prefix a
// proxy has.
func (r *Request) parsePath(path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if part == "api" && len(parts) > i+2 {
			r.Version, parts = parts[i+1], parts[i+2:]
			break
		}
		if part == "apis" && len(parts) > i+3 {
			r.Group, r.Version, parts = parts[i+1], parts[i+2], parts[i+3:]
			break
		}
	}
	if r.Version == "" {
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && (len(parts) > 3 || !isNamespaceSubresource(parts[2])) {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&r.Resource, &r.Name} {
		if len(parts) > i {
			*into = parts[i]
		}
	}
	if len(parts) > 2 {
		r.Subresource = strings.Join(parts[2:], "/")
	}
	if r.Resource == "namespaces" && r.Group == "" {
		r.Namespace = r.Name
	}
}

func isNamespaceSubresource(name string) bool { return name == "status" || name == "finalize" }

func verbOf(req *http.Request, query url.Values, r Request) string {
	switch req.Method {
	case http.MethodPost:
		if strings.Contains(r.Path, difference.Path+"/") {
			return "difference"
		}
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if r.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case r.Resource == "":
		return strings.ToLower(req.Method)
	case r.Name != "":
		return "get"
	case isTrue(query, "watch"):
		return "watch"
	}
	return "list"
}

func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return value == "true" || value == "1"
}
