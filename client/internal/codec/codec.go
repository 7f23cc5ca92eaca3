// Package codec decodes what an API server answers and encodes what it is sent:
// objects, lists that are read item by item, and the events of a watch, each in
// JSON and in protobuf.
//
// A [Codec] knows the type of an endpoint's items; a [Source] is the answer that
// it reads from. Errors are plain: package client makes them the ones that it
// documents.
//
// Reading order: codec.go and media.go; source.go; item.go with jsonlist.go and
// protobuflist.go; events.go with watchjson.go and watchprotobuf.go. Objects are
// read by the shapes of their Go types (jsonshape.go and jsondecode.go,
// protoshape.go and protodecode.go), so that equal parts can be shared (share.go,
// laststates.go) and are seldom read at all (sitetable.go for JSON, protosite.go for
// protobuf); objects without a Go type by jsonvalues.go.
package codec

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// Form is what the items of a resource are in Go.
type Form int

// The forms: structs of Go, unstructured.Unstructured, and
// metav1.PartialObjectMetadata.
const (
	FormTyped Form = iota
	FormUnstructured
	FormMetadata
)

// Codec decodes the items of one client.Resource. It does not change once it is
// made, and any number of goroutines may use it.
type Codec[T Item] struct {
	newT func() T
	form Form
	// kind is that of types in a scheme, and empty for others. The codec clears kind
	// and apiVersion of their items, as client-go does: the Go type implies them,
	// and servers leave them out of the items of lists.
	kind       schema.GroupVersionKind
	apiVersion string // kind's
	// listKind is the kind of their lists, for built-in types; "": it is not known, as a
	// CustomResourceDefinition names it.
	listKind string
	// protobuf is true for a type that can be decoded from protobuf.
	protobuf bool
	// interning makes the objects of one stream share equal parts: see
	// client.Resource.Interning.
	interning bool
}

// New returns the codec of items that newT makes, each time a new, empty one. kind
// is what the scheme says of the items' Go type, or empty.
func New[T Item](kind schema.GroupVersionKind, f Form, newT func() T) *Codec[T] {
	c := &Codec[T]{newT: newT, form: f, kind: kind, apiVersion: kind.GroupVersion().String()}
	builtin := f == FormTyped && scheme.IsBuiltin(reflect.TypeFor[T]())
	if f == FormMetadata || builtin {
		_, c.protobuf = any(newT()).(protoUnmarshaler)
	}
	if builtin && !kind.Empty() {
		c.listKind = kind.Kind + "List"
	}
	return c
}

// WithInterning returns a codec for the same items that lets the objects of one
// stream share equal parts.
func (c *Codec[T]) WithInterning() *Codec[T] {
	shares := *c
	shares.interning = true
	return &shares
}

// NewItem returns a new, empty item.
func (c *Codec[T]) NewItem() T { return c.newT() }

// Form returns what the items are in Go.
func (c *Codec[T]) Form() Form { return c.form }

// CanProtobuf returns whether the items can be decoded from protobuf.
func (c *Codec[T]) CanProtobuf() bool { return c.protobuf }

// finish removes from a decoded item what depends on the encoding it came in. It
// returns an error if the item says that it is of another kind.
func (c *Codec[T]) finish(obj T) error {
	if c.form != FormTyped || c.kind.Empty() {
		return nil
	}
	of := obj.GetObjectKind()
	if err := c.checkKind(of.GroupVersionKind()); err != nil {
		return err
	}
	of.SetGroupVersionKind(schema.GroupVersionKind{})
	return nil
}

// checkKind returns an error if an object of a kind is none of the items: most kinds
// can be decoded as most others, with nothing in them but the metadata. What is empty, the
// server does not say, as in the items of its lists. Servers that cannot reduce objects to their
// metadata send them as they are, and objects without a Go type may be of any kind.
func (c *Codec[T]) checkKind(kind schema.GroupVersionKind) error {
	switch {
	case c.form != FormTyped || c.kind.Empty():
		return nil
	case kind.Kind != "" && kind.Kind != c.kind.Kind:
		return fmt.Errorf("an object of kind %.40q in place of one of kind %q", kind.Kind, c.kind.Kind)
	default:
		return c.checkVersion("an object", kind)
	}
}

// checkTypeMeta is checkKind for the envelope of protobuf. It makes no strings of the right one.
func (c *Codec[T]) checkTypeMeta(of typeMeta) error {
	if string(of.kind) == c.kind.Kind && string(of.apiVersion) == c.apiVersion {
		return nil
	}
	return c.checkKind(of.gvk())
}

// checkVersion returns an error if something is of another group or version than the items.
// A kind of one name may be in several groups, with other members.
func (c *Codec[T]) checkVersion(what string, kind schema.GroupVersionKind) error {
	if kind.Version == "" || kind.GroupVersion() == c.kind.GroupVersion() {
		return nil
	}
	return fmt.Errorf("%s of apiVersion %.80q in place of one of %q", what, kind.GroupVersion(), c.apiVersion)
}

// checkListKind returns an error if a list of a kind has other items. Those do not say
// their kind. What is empty, the server does not say; "List" is the kind of any items.
func (c *Codec[T]) checkListKind(kind schema.GroupVersionKind) error {
	switch {
	case kind.Kind == "List" || c.form != FormTyped || c.kind.Empty():
		return nil
	case kind.Kind != "" && c.listKind != "" && kind.Kind != c.listKind:
		return fmt.Errorf("an answer of kind %.40q in place of one of kind %q", kind.Kind, c.listKind)
	default:
		return c.checkVersion("a list", kind)
	}
}

// Decode decodes one object from a whole body.
func (c *Codec[T]) Decode(enc Encoding, data []byte) (T, error) {
	var none T
	if enc == EncodingProtobuf { // finish sees no kind
		_, of, err := openEnvelope(data)
		if err == nil {
			err = c.checkTypeMeta(of)
		}
		if err != nil {
			return none, err
		}
	}
	obj := c.newT()
	if err := DecodeInto(enc, data, obj); err != nil {
		return none, err
	}
	return obj, c.finish(obj)
}

// DecodeAny decodes one object of whatever kind: an answer to a subresource, such as a Scale, of which T
// gets the metadata, and members that both have.
func (c *Codec[T]) DecodeAny(enc Encoding, data []byte) (T, error) {
	obj := c.newT()
	if err := DecodeInto(enc, data, obj); err != nil {
		var none T
		return none, err
	}
	if c.form == FormTyped && !c.kind.Empty() {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, nil
}

// DecodeInto decodes one object of any kind from a whole body.
func DecodeInto(enc Encoding, data []byte, into runtime.Object) error {
	switch enc {
	case EncodingJSON:
		return unmarshalJSON(data, into)
	case EncodingProtobuf:
		return unmarshalProtobuf(data, into)
	}
	return errUnknownEncoding
}

// Encode encodes the body of a request, and returns it with its media type. The
// body has the kind that the scheme says, whatever is in its TypeMeta; types that are
// not in the scheme, and those of metav1, have to carry theirs. Encode does not change
// obj, which other goroutines may read: it may come out of a cache.
func Encode(s *scheme.Scheme, obj runtime.Object, protobuf bool) ([]byte, string, error) {
	kind, err := s.KindOf(obj)
	if err != nil {
		return nil, "", err
	}
	if m, ok := obj.(protoMarshaler); ok && protobuf {
		data, err := marshalProtobuf(m, kind)
		return data, Protobuf, err
	}
	sent := withKind(obj, kind)
	data, err := marshalJSON(sent)
	if err == nil && sent.GetObjectKind().GroupVersionKind() != kind {
		data, err = insertKind(data, kind) // a Go type without TypeMeta
	}
	return data, JSON, err
}

// withKind returns obj if it has the kind, or else a shallow copy that has.
func withKind(obj runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == kind {
		return obj
	}
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return obj // its kind is within a map that a shallow copy shares
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer {
		return obj
	}
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	out := c.Interface().(runtime.Object)
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out
}

// insertKind puts a kind at the beginning of an object in JSON.
func insertKind(object []byte, kind schema.GroupVersionKind) ([]byte, error) {
	apiVersion, name := kind.ToAPIVersionAndKind()
	head, err := json.Marshal(map[string]string{"apiVersion": apiVersion, "kind": name})
	if err != nil || len(object) < len("{}") || object[0] != '{' {
		return object, err
	}
	if string(object) == "{}" {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), object[1:]...), nil
}
