package resource

import (
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// CBORTag begins every CBOR document of Kubernetes: the tag "self-described
// CBOR" (RFC 8949 section 3.4.6). What is nested in a document has none.
const CBORTag = "\xd9\xd9\xf7"

// CBOR major types (RFC 8949 section 3.1).
const (
	cborBytes = 2 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
)

// MarshalCBOR returns the CBOR of any API value, such as a runtime.Object or a
// ListMeta, without the tag that begins a document. What v says of its kind
// and apiVersion is encoded as it is. It is deterministic.
func MarshalCBOR(v any) ([]byte, error) {
	if u, ok := v.(*unstructured.Unstructured); ok {
		v = u.Object
	}
	data, err := direct.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T as CBOR: %w", v, err)
	}
	return data, nil
}

// AppendCBORMap appends the head of a map with so many members.
func AppendCBORMap(dst []byte, members int) []byte { return appendCBORHead(dst, cborMap, members) }

// AppendCBORArray appends the head of an array with so many items.
func AppendCBORArray(dst []byte, items int) []byte { return appendCBORHead(dst, cborArray, items) }

// AppendCBORString appends a string as Kubernetes encodes them: as bytes.
func AppendCBORString(dst []byte, s string) []byte {
	return append(appendCBORHead(dst, cborBytes, len(s)), s...)
}

// AppendCBORKind appends a map as MarshalCBOR returned it, with kind and
// apiVersion in front of its members. It must not have them yet.
func AppendCBORKind(dst []byte, gvk schema.GroupVersionKind, object []byte) ([]byte, error) {
	members, body, err := cborMembers(object)
	if err != nil {
		return dst, err
	}
	dst = AppendCBORMap(dst, members+2)
	dst = AppendCBORString(dst, "kind")
	dst = AppendCBORString(dst, gvk.Kind)
	dst = AppendCBORString(dst, "apiVersion")
	dst = AppendCBORString(dst, gvk.GroupVersion().String())
	return append(dst, body...), nil
}

func appendCBORHead(dst []byte, major byte, n int) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
}

// cborMembers returns how many members a map has, and their bytes.
func cborMembers(object []byte) (members int, body []byte, err error) {
	errNoMap := errors.New("a CBOR map of at most 65535 members is expected")
	if len(object) == 0 || object[0]&0xe0 != cborMap {
		return 0, nil, errNoMap
	}
	switch info := object[0] & 0x1f; {
	case info < 24:
		return int(info), object[1:], nil
	case info == 24 && len(object) >= 2:
		return int(object[1]), object[2:], nil
	case info == 25 && len(object) >= 3:
		return int(binary.BigEndian.Uint16(object[1:])), object[3:], nil
	}
	return 0, nil, errNoMap
}

// decodeCBOR decodes a body, with unknown fields as strict errors.
func decodeCBOR(body []byte, into runtime.Object) (gvk schema.GroupVersionKind, strictErrs []error, err error) {
	kinds := anyKind{into}
	_, claimed, err := cbor.NewSerializer(kinds, kinds, cbor.Strict(true)).Decode(body, nil, into)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		strictErrs, err = strict.Errors(), nil
	}
	if err != nil {
		return gvk, nil, fmt.Errorf("malformed CBOR body: %w", err)
	}
	if claimed.Kind == unclaimed.Kind {
		claimed.Kind = ""
	}
	if claimed.Version == unclaimed.Version {
		claimed.Group, claimed.Version = "", ""
	}
	return *claimed, strictErrs, nil
}

// anyKind lets the serializer decode into an object whatever the body says
// that it is: judging that is the caller's.
type anyKind struct{ into runtime.Object }

// unclaimed stands for what a body does not say.
var unclaimed = schema.GroupVersionKind{Version: "unclaimed", Kind: "unclaimed"}

// ObjectKinds implements runtime.ObjectTyper.
func (anyKind) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{unclaimed}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (anyKind) Recognizes(schema.GroupVersionKind) bool { return true }

// New implements runtime.ObjectCreater.
func (k anyKind) New(schema.GroupVersionKind) (runtime.Object, error) { return k.into, nil }
