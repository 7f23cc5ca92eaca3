package handlers

import (
	"encoding/hex"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// fieldValidation is what happens to unknown and duplicate fields: Ignore, Warn or
// Strict (KEP-2885). "" is Warn.
type fieldValidation string

const (
	validationIgnore fieldValidation = "Ignore"
	validationStrict fieldValidation = "Strict"
)

// maxWarnings bounds how many strict errors of one body become warnings: a body
// can hold more than a header can.
const maxWarnings = 20

// decode reads the body as an object of the endpoint.
func (x *writer) decode() (resource.Object, error) {
	obj, gvk, strict, err := x.q.Resource.DecodeBodyInPlace(x.mediaType, x.body)
	if err != nil {
		return nil, x.bodyError(err, gvk)
	}
	want := x.q.Resource.GroupVersionKind()
	if err := x.judge(strict, gvk); err != nil {
		return nil, err
	}
	if gvk.GroupVersion() != want.GroupVersion() {
		return nil, otherVersion(gvk.GroupVersion(), want.GroupVersion())
	}
	return obj, nil
}

// decodeAs reads the body as an object of another kind.
func (x *writer) decodeAs(want schema.GroupVersionKind, into runtime.Object) error {
	gvk, strict, err := resource.DecodeInto(x.mediaType, x.body, want, into)
	if err != nil {
		return x.undecodable(err, gvk, want, x.body)
	}
	return x.judge(strict, want)
}

// judge handles the errors of strict decoding as fieldValidation demands: it
// refuses the request, adds warnings to the answer, or ignores them. The kind is that of the
// body: whether it is the endpoint's is asked later.
func (x *writer) judge(strict []error, kind schema.GroupVersionKind) error {
	if why := x.refuses(strict); why != "" {
		return status.BadRequest("%s in version %q cannot be handled as a %s: %s", kind.Kind, kind.Version, kind.Kind, why)
	}
	return nil
}

// refuses returns why the errors of strict decoding refuse the request, or else warns of
// them, or ignores them.
func (x *writer) refuses(strict []error) (why string) {
	if len(strict) == 0 || x.validation == validationIgnore {
		return ""
	}
	if len(strict) > maxWarnings {
		strict = append(strict[:maxWarnings:maxWarnings], errors.New("further fields are not listed"))
	}
	texts := make([]string, len(strict))
	for i, err := range strict {
		texts[i] = err.Error()
	}
	if x.validation == validationStrict {
		return "strict decoding error: " + strings.Join(texts, ", ")
	}
	var warnings []string
	for _, text := range texts {
		warnings = append(warnings, yamlLines(text)...)
	}
	request.AddWarnings(x.w, warnings...)
	return ""
}

// yamlLines returns what is wrong with each line of YAML, if the text is the error of the library that
// reads it, and else the text.
func yamlLines(text string) []string {
	lines := strings.Split(strings.TrimPrefix(text, "error converting YAML to JSON: "), "\n")
	if lines[0] != "yaml: unmarshal errors:" {
		return []string{text}
	}
	lines = lines[1:]
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// bodyError is the function bodyError for an object of the endpoint.
func (x *writer) bodyError(err error, got schema.GroupVersionKind) error {
	want := x.q.Resource.GroupVersionKind()
	if x.q.Resource.Stored().Mixed {
		var missing *resource.MissingKindError
		if x.validation == validationIgnore && errors.As(err, &missing) {
			got = want // the decoder that does not look for unknown fields has guessed it, and refuses the body all the same
		}
		return bodyError(err, got, want, x.body)
	}
	return x.undecodable(err, got, want, x.body)
}

// otherVersion refuses an object of another version than the path's.
func otherVersion(got, want schema.GroupVersion) error {
	return status.BadRequest("the API version in the data (%s) does not match the expected API version (%s)", got, want)
}

// bodyError returns Kubernetes' error for a body of which an object of the
// kind want cannot be decoded. got is the kind of the body, as far as known.
func bodyError(err error, got, want schema.GroupVersionKind, body []byte) error {
	var media *resource.UnsupportedMediaTypeError
	var kind *resource.KindMismatchError
	switch {
	case errors.As(err, &media):
		return encoding.UnsupportedMediaType()
	case errors.As(err, &kind):
		if kind.Got.GroupVersion() != kind.Want.GroupVersion() {
			return otherVersion(kind.Got.GroupVersion(), kind.Want.GroupVersion())
		}
		return status.BadRequest("%s in version %q cannot be handled as a %s", kind.Got.Kind, kind.Got.GroupVersion(), kind.Want.Kind)
	case got.Kind == "":
		return status.BadRequest("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err, beginning(body))
	}
	return status.BadRequest("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err)
}

// beginning returns how a body begins, as Kubernetes shows it.
func beginning(body []byte) string {
	const most = 30
	text, more := body, ""
	if len(body) > most {
		text, more = body[:most], " ..."
	}
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] == '{':
		return string(text) + more
	default:
		return hex.EncodeToString(text) + more
	}
}
