package encoding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// WriteObject answers with any object of the scheme (a Status, a Scale, a
// TokenReview), in the media type that the client prefers. Objects without
// kind and apiVersion get those of the scheme; obj itself is not modified.
func WriteObject(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) error {
	form, err := Negotiate(r, PlainOffer)
	if err != nil {
		return err
	}
	encoding := request.MeasureAnswer(w)
	body, err := encodeObject(form, obj)
	encoding.End()
	if err != nil {
		return err
	}
	WriteBody(w, r, code, form.ContentType(), body)
	return nil
}

// encodeObject returns obj in the given media type, whatever its shape.
func encodeObject(form Form, obj runtime.Object) ([]byte, error) {
	obj, err := withKind(obj)
	if err != nil {
		return nil, err
	}
	if form.Media == Protobuf {
		body, err := resource.MarshalProtobuf(obj, obj.GetObjectKind().GroupVersionKind())
		if errors.Is(err, resource.ErrNoProtobuf) {
			return nil, status.NotAcceptable(mediaNames[JSON])
		}
		return body, err
	}
	if form.Media == CBOR {
		body, err := resource.MarshalCBOR(obj)
		return append([]byte(resource.CBORTag), body...), err
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T as JSON: %w", obj, err)
	}
	return presentJSON(form, body)
}

// presentJSON turns compact JSON into what form asks for: itself, indented, or
// YAML. The input is not modified, and may be returned.
func presentJSON(form Form, body []byte) ([]byte, error) {
	switch {
	case form.Media == YAML:
		return yaml.JSONToYAML(body)
	case form.Pretty:
		var buf bytes.Buffer
		if err := json.Indent(&buf, body, "", "  "); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	}
	return body, nil
}

// withKind returns obj if it has its kind set, or a copy of it that has.
func withKind(obj runtime.Object) (runtime.Object, error) {
	if !obj.GetObjectKind().GroupVersionKind().Empty() {
		return obj, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("answer with %T: %w", obj, err)
	}
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	return obj, nil
}

// WriteBody writes a complete answer, compressed if it is large and the client
// accepts gzip. It returns no error: if it fails, the connection is broken.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-cache, private")
	if len(body) >= CompressFrom && r.Method == http.MethodGet && AcceptsGzip(r) {
		writeGzip(w, code, body)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// Respond writes an object, or the error that prevents that.
func Respond(w http.ResponseWriter, r *http.Request, obj runtime.Object) {
	if err := WriteObject(w, r, http.StatusOK, obj); err != nil {
		WriteError(w, r, err)
	}
}
