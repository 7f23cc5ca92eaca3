package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/levelwire/levelwire/server/internal/resource/structjson"
)

// Prefix returns how the JSON of every stored and cached object of the
// resource begins: `{"kind":"Pod","apiVersion":"v1",`. After it comes
// `"metadata":{`. What follows the prefix, behind a `{`, is the object as an
// item of a JSON list of a built-in kind, where Kubernetes leaves out kind and
// apiVersion. For a mixed resource it is cut off behind the group, as the
// version differs. The slice is shared and must not be modified.
func (r *Resource) Prefix() []byte {
	if p := r.prefix.Load(); p != nil {
		return *p
	}
	kind, _ := json.Marshal(r.Kind)
	apiVersion, _ := json.Marshal(r.GroupVersion().String())
	p := fmt.Appendf(nil, `{"kind":%s,"apiVersion":%s,`, kind, apiVersion)
	if r.Mixed {
		p = fmt.Appendf(nil, `{"kind":%s,"apiVersion":"%s/`, kind, r.Group)
	}
	p = p[:len(p):len(p)]
	r.prefix.Store(&p)
	return p
}

// ConversionError is a conversion to the stored version that failed: not the
// object is at fault, but who converts it, as a webhook.
type ConversionError struct{ cause error }

// Error implements error.
func (e *ConversionError) Error() string { return e.cause.Error() }

// Unwrap returns what the converter said.
func (e *ConversionError) Unwrap() error { return e.cause }

// Encode returns the stored form of obj: JSON in the stored resource's version,
// kind and apiVersion first, then metadata, without resourceVersion. obj is not
// modified and may be shared; what its TypeMeta says does not matter. The result belongs to the caller.
// An error is a *ConversionError unless it is the object that cannot be written. Encode blocks
// only while a conversion webhook is asked, and ctx bounds that.
func (r *Resource) Encode(ctx context.Context, obj Object) ([]byte, error) {
	if r.Storage == nil {
		return r.marshalStored(obj)
	}
	stored, err := r.ToStorage(ctx, obj)
	if err != nil {
		return nil, &ConversionError{fmt.Errorf("convert %s to its stored form: %w", r.Kind, err)}
	}
	return r.Storage.marshalStored(stored)
}

// marshalStored returns the stored form of an object in the version in which it is stored.
func (r *Resource) marshalStored(obj Object) ([]byte, error) {
	encoded, err := r.marshal(obj, dropRevision)
	if err != nil {
		return nil, err
	}
	return encoded, checkJSONDepth(encoded)
}

// Marshal returns obj as JSON in the resource's own version, kind and
// apiVersion first, then metadata with the resourceVersion that obj carries.
// For a stored resource that is the cached form. obj is not modified.
func (r *Resource) Marshal(obj Object) ([]byte, error) {
	return r.marshal(obj, keepRevision)
}

// Decode returns the object whose stored or cached JSON is given, in the
// resource's own version: typed for built-in kinds, *unstructured.Unstructured
// for custom ones. The object shares no memory with json. Decode blocks only
// while a conversion webhook is asked, and ctx bounds that.
func (r *Resource) Decode(ctx context.Context, json []byte) (Object, error) {
	if r.Storage != nil {
		stored, err := r.Storage.DecodeShown(json)
		if err != nil {
			return nil, err
		}
		obj, err := r.FromStorage(ctx, stored)
		if err != nil {
			return nil, fmt.Errorf("convert stored %s to %s: %w", r.Storage.GroupVersionKind(), r.GroupVersionKind(), err)
		}
		obj.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
		return obj, nil
	}
	return r.DecodeShown(json)
}

// DecodeInPlace is Decode for JSON that never changes from then on, which saves a copy:
// the object's strings may be parts of it.
func (r *Resource) DecodeInPlace(ctx context.Context, json []byte) (Object, error) {
	if r.Storage == nil {
		if obj := r.New(); structjson.DecodeInPlace(json, obj) {
			return obj, nil
		}
	}
	return r.Decode(ctx, json)
}

// DecodeShown is Decode for JSON that is in the resource's own version already,
// as Marshal made it.
func (r *Resource) DecodeShown(json []byte) (Object, error) {
	obj := r.New()
	if err := unmarshal(json, obj); err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", r.Kind, err)
	}
	return obj, nil
}

// unmarshal decodes JSON that our own encoder, or a kube-apiserver, wrote.
func unmarshal(data []byte, into runtime.Object) error {
	if structjson.Decode(data, into) {
		return nil
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = nil
		// Integers stay integers, which matters to patches.
		return kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object)
	}
	return jsonv2.Unmarshal(data, into, structjson.Options)
}

type revisionRule bool

const (
	keepRevision revisionRule = false
	dropRevision revisionRule = true
)

// buffers are reused between encodes, so that each allocates only its result.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// mostPooled bounds what a pooled buffer keeps.
const mostPooled = 64 << 10

// marshal encodes obj in canonical member order.
func (r *Resource) marshal(obj Object, rule revisionRule) ([]byte, error) {
	buf := buffers.Get().(*[]byte)
	out, ok, err := r.appendTyped((*buf)[:0], obj, rule)
	if ok && err == nil {
		result := bytes.Clone(out)
		if cap(out) <= mostPooled {
			*buf = out
		}
		buffers.Put(buf)
		return result, nil
	}
	buffers.Put(buf)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Kind, err)
	}
	return r.marshalGeneral(obj, rule)
}

// appendTyped is marshal for the types that package structjson knows.
func (r *Resource) appendTyped(out []byte, obj Object, rule revisionRule) (_ []byte, ok bool, err error) {
	if r.Mixed {
		return out, false, nil
	}
	return structjson.Append(out, r.Prefix(), obj, rule == keepRevision)
}

// marshalGeneral is marshal for every type.
func (r *Resource) marshalGeneral(obj Object, rule revisionRule) ([]byte, error) {
	var value any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		value = u.Object
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Kind, err)
	}
	return r.canonical(buf.Bytes(), rule)
}
