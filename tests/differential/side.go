package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// side is a server that is asked.
type side struct {
	name   string // in messages
	url    string
	token  string
	client *http.Client
	// checksPolicies: the server writes into the status of a ValidatingAdmissionPolicy what it thinks of
	// its types, which kube-controller-manager does beside the judge.
	checksPolicies bool
}

// The user agent decides on the manager in managedFields.
const userAgent = "differential"

// namespace is where the objects are that have one.
const namespace = "differential"

// do sends a message without a query of its own. A patch is a merge patch.
func (s *side) do(ctx context.Context, method, path, accept string, body any) (*answer, error) {
	m := message{method: method, contentType: asJSON, body: body}
	if method == http.MethodPatch {
		m.contentType = asMergePatch
	}
	return s.exchange(ctx, m, path, accept)
}

// A server whose handler panics ends the stream so; the answer to compare says brokenOff.
const (
	panicked  = "INTERNAL_ERROR; received from peer"
	brokenOff = "the server broke off"
)

func (s *side) exchange(ctx context.Context, m message, path, accept string) (*answer, error) {
	response, err := s.send(ctx, m, path, accept)
	if err != nil && strings.Contains(err.Error(), panicked) {
		return &answer{At: time.Now(), Code: http.StatusInternalServerError, Text: brokenOff}, nil
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a, err := parseAnswer(response)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", s.name, m.method, path, err)
	}
	return a, nil
}

func (s *side) send(ctx context.Context, m message, path, accept string) (*http.Response, error) {
	var reader io.Reader
	if m.body != nil {
		text, err := bodyOf(m.body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, m.method, s.url+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("User-Agent", userAgent)
	if m.body != nil && m.contentType != "" {
		request.Header.Set("Content-Type", m.contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return response, nil
}

// read gets a document as it is.
func (s *side) read(ctx context.Context, path, accept string) ([]byte, error) {
	response, err := s.send(ctx, message{method: http.MethodGet}, path, accept)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: GET %s: %s: %s", s.name, path, response.Status, text)
	}
	return text, err
}

const (
	asJSON      = "application/json"
	asText      = "*/*"
	asDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// catalog reads what the server serves.
func (s *side) catalog(ctx context.Context) (*catalog, error) {
	c := &catalog{Documents: map[string]json.RawMessage{}}
	for _, root := range []string{"/api", "/apis"} {
		text, err := s.read(ctx, root, asDiscovery)
		if err != nil {
			return nil, err
		}
		c.Discovery = append(c.Discovery, text)
	}
	text, err := s.read(ctx, "/openapi/v3", asJSON)
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	for name, at := range index.Paths {
		text, err := s.read(ctx, at.URL, asJSON)
		if err != nil {
			return nil, err
		}
		// What is not read would be most of the recording.
		var d document
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", at.URL, err)
		}
		if text, err = json.Marshal(d); err != nil {
			return nil, err
		}
		c.Documents[name] = text
	}
	return c, c.load()
}

// prepare makes what other objects need: the namespace, and its account.
func (s *side) prepare(ctx context.Context) error {
	for _, o := range []struct {
		path string
		body map[string]any
	}{
		{"/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}},
		{"/api/v1/namespaces/" + namespace + "/serviceaccounts", map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}}},
	} {
		if err := s.ensure(ctx, o.path, o.body); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates an object that may be there.
func (s *side) ensure(ctx context.Context, path string, body map[string]any) error {
	a, err := s.do(ctx, http.MethodPost, path, asJSON, body)
	if err == nil && !a.accepted() && a.Code != http.StatusConflict {
		err = s.refusal(http.MethodPost, path, a)
	}
	return err
}

// refusal is the error of a write that the comparison cannot do without.
func (s *side) refusal(method, path string, a *answer) error {
	return fmt.Errorf("%s: %s %s: %d: %s%s", s.name, method, path, a.Code, a.text("message"), a.Text)
}

// ask asks a request, whose base is an object that the server has accepted.
func (s *side) ask(ctx context.Context, r *request, base map[string]any) (*answer, error) {
	if isSequence(r.verb) {
		return s.askSequence(ctx, r, base)
	}
	if r.needsStored() {
		return s.askFilled(ctx, r, base)
	}
	return s.askOnce(ctx, r, base)
}

func (s *side) askOnce(ctx context.Context, r *request, base map[string]any) (*answer, error) {
	m, err := r.message(base)
	if err != nil {
		return nil, err
	}
	at := r.kind.path(namespace)
	switch {
	case r.deletes():
		return s.askDelete(ctx, r, m, base)
	case r.verb == readBack:
		return s.askReadBack(ctx, r, m)
	case r.verb != create:
		at += "/" + nameOf(base)
	}
	if r.verb == updateStatus {
		at += "/status"
	}
	return s.exchange(ctx, m, at+"?dryRun=All"+m.query, asJSON)
}

// askDelete asks a delete; one that is no dry run says also what a read finds after it.
func (s *side) askDelete(ctx context.Context, r *request, m message, base map[string]any) (*answer, error) {
	collection := r.kind.path(namespace)
	one := collection + "/" + nameOf(base)
	at := one
	if r.verb == deleteCollection {
		at = collection
	}
	a, err := s.exchange(ctx, m, at+"?"+m.query, asJSON)
	if err == nil && r.real() {
		a.After, err = s.settle(ctx, r.kind, one)
	}
	return a, err
}

func nameOf(object map[string]any) string {
	name, _ := get(object, path{"metadata", "name"})
	text, _ := name.(string)
	return text
}

// store creates an object, whatever there was of its name, with its status if it is one
// that has a status, after the server's controllers have seen it.
func (s *side) store(ctx context.Context, o *object) error {
	at := o.kind.path(namespace)
	if err := s.remove(ctx, o); err != nil {
		return err
	}
	a, err := s.do(ctx, http.MethodPost, at, asJSON, o.value)
	if err == nil && !a.accepted() {
		err = s.refusal(http.MethodPost, at, a)
	}
	if err != nil {
		return err
	}
	at += "/" + nameOf(o.value)
	if _, err := s.settle(ctx, o.kind, at); err != nil || o.base != withStatus {
		return err
	}
	return s.storeStatus(ctx, at, o.value)
}

func (s *side) storeStatus(ctx context.Context, at string, value map[string]any) error {
	a, err := s.putStatus(ctx, at, "", value)
	if err == nil && !a.accepted() {
		err = s.refusal(http.MethodPut, at+"/status", a)
	}
	return err
}

// putStatus writes a status from the version that there is, which kube-apiserver demands for some
// kinds, until no controller comes between.
func (s *side) putStatus(ctx context.Context, at, query string, value map[string]any) (*answer, error) {
	for {
		a, err := s.do(ctx, http.MethodGet, at, asJSON, nil)
		if err != nil {
			return nil, err
		}
		version, _ := get(a.Body, versionPath)
		metadata, _ := value["metadata"].(map[string]any)
		a, err = s.do(ctx, http.MethodPut, at+"/status"+query, asJSON, with(value, "metadata", with(metadata, "resourceVersion", version)))
		if err != nil || a.Code != http.StatusConflict {
			return a, err
		}
	}
}

// remove deletes an object at once, with its finalizers. That they cannot be taken off is an error only
// if it stays for them: of a definition whose status does not fit it, only its server can do that.
func (s *side) remove(ctx context.Context, o *object) error {
	at := o.kind.path(namespace) + "/" + url.PathEscape(nameOf(o.value))
	a, err := s.do(ctx, http.MethodDelete, at+"?gracePeriodSeconds=0", asJSON, nil)
	if err != nil || !a.accepted() {
		return err // it was not there
	}
	a, err = s.do(ctx, http.MethodPatch, at, asJSON, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		return err
	}
	var refused error
	if !a.accepted() && a.Code != http.StatusNotFound {
		refused = s.refusal(http.MethodPatch, at, a)
	}
	if o.kind.Kind == "Namespace" {
		// What ends a namespace is a controller, which neither server has.
		left := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": nameOf(o.value)}}
		if _, err = s.do(ctx, http.MethodPut, at+"/finalize", asJSON, left); err != nil {
			return err
		}
	}
	if err := s.awaitGone(ctx, at); err != nil {
		return errors.Join(refused, err)
	}
	return nil
}

// awaitGone waits for the controllers of a server that end an object.
func (s *side) awaitGone(ctx context.Context, at string) error {
	for until := time.Now().Add(settleWithin); ; {
		a, err := s.do(ctx, http.MethodGet, at, asJSON, nil)
		if err != nil || !a.accepted() {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s: %s is still there %v after its deletion: %s", s.name, at, settleWithin, literal(a.Body))
		}
		time.Sleep(pollAfter)
	}
}
