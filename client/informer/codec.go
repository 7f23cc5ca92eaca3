package informer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/client"
	clientcodec "github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/scheme"
)

// codec turns objects into the bytes of a cache file and back.
type codec[T client.Object] struct {
	name   string // of the encoding and the type's shape
	append func(dst []byte, obj T) ([]byte, error)
	// decode returns an object that shares nothing. It is safe for concurrent use.
	decode func(data []byte) (T, error)
	// exact: what append has encoded can surely be decoded.
	exact bool
	// decoder returns a function for one goroutine, whose objects share what
	// they have in common.
	decoder func() func(data []byte) (T, error)
}

// withoutInterning returns the same codec, whose objects share nothing in any case.
func (c codec[T]) withoutInterning() codec[T] {
	decode := c.decode
	c.decoder = func() func([]byte) (T, error) { return decode }
	return c
}

// message is what the generated code of built-in types offers.
type message interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// newCodec is encodingOf, with a name that differs for types that hold
// different fields.
func newCodec[T client.Object]() (codec[T], error) {
	c, err := encodingOf[T]()
	if err != nil {
		return c, fmt.Errorf("objects cannot be kept on disk: %w", err)
	}
	typ := reflect.TypeFor[T]()
	c.name = fmt.Sprintf("%s %v %s", c.name, typ, shape(typ))
	return c, nil
}

// encodingOf uses protobuf for built-in types, whose Go type determines the
// kind, and JSON for all others.
func encodingOf[T client.Object]() (codec[T], error) {
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Pointer {
		return codec[T]{}, fmt.Errorf("%v is no pointer", typ)
	}
	newT := func() T { return reflect.New(typ.Elem()).Interface().(T) }
	fromJSON := func(data []byte) (T, error) {
		obj := newT()
		return obj, contained("decoding an object", func() error { return decodeJSON(data, obj) })
	}
	c := codec[T]{name: "json", append: appendJSON[T], decode: fromJSON, decoder: func() func([]byte) (T, error) { return fromJSON }}
	if _, ok := any(newT()).(message); ok && scheme.IsBuiltin(typ) {
		c.name = "protobuf"
		c.append = func(dst []byte, obj T) ([]byte, error) { return appendMessage(dst, any(obj).(message)) }
		c.exact = true
		c.decode = func(data []byte) (T, error) {
			obj := newT()
			return obj, any(obj).(message).Unmarshal(data)
		}
		c.decoder = func() func([]byte) (T, error) {
			decode, _ := clientcodec.MessageDecoder(newT) // it can: it is a message
			return decode
		}
	}
	return c, nil
}

func appendMessage(dst []byte, m message) ([]byte, error) {
	start, size := len(dst), m.Size()
	dst = slices.Grow(dst, size)[:start+size]
	n, err := m.MarshalToSizedBuffer(dst[start:])
	if err == nil && n != size {
		err = fmt.Errorf("a message of %d bytes has %d", size, n)
	}
	return dst, err
}

func appendJSON[T client.Object](dst []byte, obj T) ([]byte, error) {
	var value any = obj
	if u, ok := value.(*unstructured.Unstructured); ok {
		value = u.Object
	}
	var data []byte
	err := contained("encoding an object", func() (err error) {
		data, err = json.Marshal(value)
		return err
	})
	return append(dst, data...), err
}

// contained calls what calls methods of the program's types (MarshalJSON, UnmarshalJSON): one that panics has failed.
func contained(what string, call func() error) (err error) {
	if panicked := contain.Call(what, func() { err = call() }); panicked != nil {
		return panicked
	}
	return err
}

func decodeJSON(data []byte, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		return utiljson.Unmarshal(data, &u.Object) // keeps integers exact
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into) // as what comes from a server is decoded
}

// shape is a hash of everything in a type that decides what an encoding of it
// can hold: a program with a newer type must not take what an older one
// stored, which lacks fields, for complete.
func shape(typ reflect.Type) string {
	h := sha256.New()
	describe(h, typ, map[reflect.Type]bool{})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(h hash.Hash, typ reflect.Type, seen map[reflect.Type]bool) {
	_, _ = io.WriteString(h, typ.String()+typ.Kind().String()+"(") // a hash never fails
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(h, typ.Elem(), seen)
	case reflect.Map:
		describe(h, typ.Key(), seen)
		describe(h, typ.Elem(), seen)
	case reflect.Struct:
		if seen[typ] {
			break
		}
		seen[typ] = true
		for i := range typ.NumField() {
			field := typ.Field(i)
			_, _ = io.WriteString(h, field.Name+" "+string(field.Tag)+" ")
			describe(h, field.Type, seen)
		}
	}
	_, _ = io.WriteString(h, ")")
}

// sampled bounds the objects that EstimateBytes encodes.
const sampled = 64

// EstimateBytes returns about how many bytes the objects of the cache take when
// they are encoded: their number times the mean of an evenly spaced sample.
// Decoded they take a small multiple of that. It is cheap enough for a metric:
// one pass over the cache, and at most 64 objects are encoded.
func (i *SharedInformer[T]) EstimateBytes() int64 {
	c, err := encodingOf[T]()
	if err != nil {
		return 0 // a type that is no pointer has no encoding
	}
	count := i.indexer.Len()
	keys := i.indexer.Keys()
	stride := max(len(keys)/sampled, 1)
	sample := make([]T, 0, sampled+1)
	for at := 0; at < len(keys) && len(sample) <= sampled; at += stride {
		if obj, ok := i.indexer.Get(keys[at]); ok {
			sample = append(sample, obj)
		}
	}
	var total, encoded int64
	var buffer []byte
	for _, obj := range sample {
		if buffer, err = c.append(buffer[:0], obj); err == nil {
			total += int64(len(buffer))
			encoded++
		}
	}
	if encoded == 0 {
		return 0
	}
	return total * int64(count) / encoded
}
