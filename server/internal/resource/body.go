package resource

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource/structjson"
)

// Media types of request and response bodies.
const (
	MediaTypeJSON     = "application/json"
	MediaTypeYAML     = "application/yaml"
	MediaTypeProtobuf = "application/vnd.kubernetes.protobuf"
	MediaTypeCBOR     = "application/cbor"
)

// UnsupportedMediaTypeError is returned for a body of a type that is not
// understood. HTTP says 415.
type UnsupportedMediaTypeError struct {
	MediaType string
}

// Error names the type and those that can be sent instead.
func (e *UnsupportedMediaTypeError) Error() string {
	return fmt.Sprintf("the body's media type %q is not supported, send %s, %s or %s", e.MediaType, MediaTypeJSON, MediaTypeYAML, MediaTypeProtobuf)
}

// KindMismatchError is returned for a body that says it is something else
// than the endpoint it was sent to takes. HTTP says 400.
type KindMismatchError struct {
	Got, Want schema.GroupVersionKind
}

// Error names both kinds.
func (e *KindMismatchError) Error() string {
	if e.Got.GroupVersion() != e.Want.GroupVersion() {
		return fmt.Sprintf("the API version in the body (%s) does not match the endpoint's (%s)", e.Got.GroupVersion(), e.Want.GroupVersion())
	}
	return fmt.Sprintf("the kind in the body (%s) does not match the endpoint's (%s)", e.Got.Kind, e.Want.Kind)
}

// DecodeBody decodes a request body into an object of the resource's own
// version. mediaType is without parameters. A missing kind or apiVersion is
// taken from the resource, and another one is a *KindMismatchError. Only objects of
// custom kinds have to say their kind, and may be of another kind or version: gvk
// is what the body says of it, and the caller judges it. A media type
// that is not understood is an *UnsupportedMediaTypeError; any other error means
// that the body is malformed. strictErrs are unknown and duplicate fields:
// what to do about them is the request's fieldValidation. gvk is what the
// body said, completed for built-in kinds. Defaults are not applied.
func (r *Resource) DecodeBody(mediaType string, body []byte) (obj Object, gvk schema.GroupVersionKind, strictErrs []error, err error) {
	obj = r.New()
	gvk, strictErrs, err = decode(mediaType, body, obj)
	if err != nil {
		return nil, refusedKind(err, gvk, r.GroupVersionKind()), nil, err
	}
	if r.Stored().Mixed {
		err = requireKind(gvk, body)
	} else {
		gvk, err = completeKind(gvk, r.GroupVersionKind(), obj)
	}
	if err != nil {
		return nil, gvk, nil, err
	}
	if r.Prune != nil {
		unknown, err := r.Prune(obj)
		if err != nil {
			return nil, gvk, nil, err
		}
		strictErrs = append(strictErrs, unknown...)
	}
	return obj, gvk, strictErrs, nil
}

// DecodeBodyInPlace is DecodeBody for a body that never changes from then on, which saves a
// copy: the object's strings may be parts of it.
func (r *Resource) DecodeBodyInPlace(mediaType string, body []byte) (obj Object, gvk schema.GroupVersionKind, strictErrs []error, err error) {
	if obj = r.New(); (mediaType == MediaTypeJSON || mediaType == "") && r.Prune == nil && structjson.DecodeInPlace(body, obj) {
		if gvk, err = claimedKind(obj); err == nil {
			gvk, err = completeKind(gvk, r.GroupVersionKind(), obj)
		}
		if err != nil {
			return nil, gvk, nil, err
		}
		return obj, gvk, nil, nil
	}
	return r.DecodeBody(mediaType, body)
}

// DecodeInto is DecodeBody for bodies that are not a resource's own objects: Binding,
// Scale, Eviction, reviews. want is the kind that into is.
func DecodeInto(mediaType string, body []byte, want schema.GroupVersionKind, into runtime.Object) (gvk schema.GroupVersionKind, strictErrs []error, err error) {
	gvk, strictErrs, err = decode(mediaType, body, into)
	if err != nil {
		return refusedKind(err, gvk, want), nil, err
	}
	gvk, err = completeKind(gvk, want, into)
	return gvk, strictErrs, err
}

// refusedKind returns the kind of a body that cannot be decoded, as far as it is known.
func refusedKind(err error, gvk, want schema.GroupVersionKind) schema.GroupVersionKind {
	var unknown *unknownKindError
	if errors.As(err, &unknown) {
		return schema.GroupVersionKind{}
	}
	if gvk.Kind == "" {
		gvk.Kind = want.Kind
	}
	if gvk.Version == "" {
		gvk.Group, gvk.Version = want.Group, want.Version
	}
	return gvk
}

// unknownKindError is why it is not known of which kind a body is.
type unknownKindError struct{ error }

func (e *unknownKindError) Unwrap() error { return e.error }

// completeKind takes from want what a body does not say of its kind.
func completeKind(gvk, want schema.GroupVersionKind, into runtime.Object) (schema.GroupVersionKind, error) {
	if gvk.Kind == "" {
		gvk.Kind = want.Kind
	}
	if gvk.Version == "" {
		gvk.Group, gvk.Version = want.Group, want.Version
	}
	if gvk != want {
		return gvk, &KindMismatchError{Got: gvk, Want: want}
	}
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return gvk, nil
}

// quotedBody is how much of a body an error shows.
const quotedBody = 256

// MissingKindError is returned for an object of a custom kind that does not say of which kind it is.
type MissingKindError struct{ body []byte }

// Error has a text that clients know.
func (e *MissingKindError) Error() string {
	return fmt.Sprintf("Object 'Kind' is missing in '%s'", e.body[:min(len(e.body), quotedBody)])
}

// requireKind wants a body to say its kind.
func requireKind(gvk schema.GroupVersionKind, body []byte) error {
	if gvk.Kind != "" {
		return nil
	}
	return &MissingKindError{body}
}

// DecodeDeleteOptions decodes the body of a DELETE. An empty body gives empty
// options. Clients name the group-version of what they delete, or v1, or
// meta.k8s.io/v1: any is accepted as long as the kind is DeleteOptions.
func DecodeDeleteOptions(mediaType string, body []byte) (options *metav1.DeleteOptions, strictErrs []error, err error) {
	options = &metav1.DeleteOptions{}
	if len(body) == 0 {
		return options, nil, nil
	}
	gvk, strictErrs, err := decode(mediaType, body, options)
	if gvk.Kind != "" && gvk.Kind != "DeleteOptions" { // whatever else is wrong, as in kube-apiserver
		return nil, nil, &KindMismatchError{Got: gvk, Want: gvk.GroupVersion().WithKind("DeleteOptions")}
	}
	if err != nil {
		return nil, nil, err
	}
	return options, strictErrs, nil
}

// DecodeAny is DecodeInto for a body of any kind. gvk is what the body says, as
// much as it says.
func DecodeAny(mediaType string, body []byte, into runtime.Object) (gvk schema.GroupVersionKind, strictErrs []error, err error) {
	return decode(mediaType, body, into)
}

// DecodeFields is DecodeAny for a body whose kind is judged later: what it says of its kind may be
// anything, even no string.
func DecodeFields(mediaType string, body []byte, into *unstructured.Unstructured) (strictErrs []error, err error) {
	_, strictErrs, err = decode(mediaType, body, into)
	var claim *claimError
	if errors.As(err, &claim) {
		err = nil
	}
	return strictErrs, err
}

// claimError is why a decoded body does not say of which kind it is.
type claimError struct{ error }

func (e *claimError) Unwrap() error { return e.error }

// decode decodes a body of any kind and returns the kind it claims to be of.
func decode(mediaType string, body []byte, into runtime.Object) (gvk schema.GroupVersionKind, strictErrs []error, err error) {
	switch mediaType {
	case MediaTypeJSON, "":
	case MediaTypeYAML:
		if body, strictErrs, err = yamlToJSON(body); err != nil {
			return gvk, nil, err
		}
	case MediaTypeProtobuf:
		gvk, raw, err := UnwrapProtobuf(body)
		if err != nil {
			return gvk, nil, err
		}
		return gvk, nil, unmarshalProtobuf(raw, into)
	case MediaTypeCBOR:
		return decodeCBOR(body, into)
	default:
		return gvk, nil, &UnsupportedMediaTypeError{MediaType: mediaType}
	}
	more, err := unmarshalStrict(body, into)
	if err != nil {
		gvk, kindErr := kindOfRefused(body)
		if kindErr != nil {
			err = &unknownKindError{kindErr}
		}
		return gvk, nil, err
	}
	if gvk, err = claimedKind(into); err != nil {
		err = &claimError{err}
	}
	return gvk, append(strictErrs, more...), err
}

// claimedKind returns the kind that a decoded body says it is of.
func claimedKind(obj runtime.Object) (schema.GroupVersionKind, error) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		for _, name := range []string{"kind", "apiVersion"} {
			if _, _, err := unstructured.NestedString(o.Object, name); err != nil {
				return schema.GroupVersionKind{}, fmt.Errorf("malformed body: %w", err)
			}
		}
		return parseKind(o.GetAPIVersion(), o.GetKind())
	default:
		if meta, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
			return parseKind(meta.APIVersion, meta.Kind)
		}
		return obj.GetObjectKind().GroupVersionKind(), nil
	}
}

func parseKind(apiVersion, kind string) (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}, &unknownKindError{err}
	}
	return gv.WithKind(kind), nil
}

// unmarshalStrict decodes JSON that a client wrote.
func unmarshalStrict(body []byte, into runtime.Object) (strictErrs []error, err error) {
	if structjson.Decode(body, into) {
		return nil, nil
	}
	return unmarshalStrictly(body, into)
}

// unmarshalStrictly is unmarshalStrict for every body.
func unmarshalStrictly(body []byte, into runtime.Object) (strictErrs []error, err error) {
	target := any(into)
	u, custom := into.(*unstructured.Unstructured)
	if custom {
		target = &u.Object
	}
	strictErrs, err = kjson.UnmarshalStrict(body, target)
	if err != nil {
		return nil, err
	}
	if custom && u.Object == nil {
		return nil, &unknownKindError{fmt.Errorf("Object 'Kind' is missing in '%s'", body)} // clients know this text
	}
	return strictErrs, nil
}

// BoundError refuses a body that would become too much when it is decoded.
type BoundError struct{ text string }

// Error says what is too much.
func (e *BoundError) Error() string { return e.text }

// yamlToJSON converts a YAML body. Keys that occur twice are strict errors.
func yamlToJSON(body []byte) (text []byte, strictErrs []error, err error) {
	if err := checkAliases(body); err != nil {
		return nil, nil, err
	}
	text, err = yaml.YAMLToJSONStrict(body)
	if err == nil {
		return text, nil, checkYAMLElements(body, text)
	}
	strict := err
	if text, err = yaml.YAMLToJSON(body); err != nil {
		return nil, nil, &unknownKindError{err}
	}
	return text, []error{strict}, checkYAMLElements(body, text)
}

// kindOfRefused reads the kind of a body that is no object of its kind, or says, in
// Kubernetes' words, why it cannot be read.
func kindOfRefused(body []byte) (schema.GroupVersionKind, error) {
	var meta struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(body, &meta); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return parseKind(meta.APIVersion, meta.Kind)
}

// kindOf reads kind and apiVersion from the top level of a JSON object.
func kindOf(data []byte) (schema.GroupVersionKind, error) {
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("kind and apiVersion cannot be read: %w", err)
	}
	return parseKind(meta.APIVersion, meta.Kind)
}
