package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// toJSON returns an object, or a patch, as JSON. ok is false if it is of no known format,
// or malformed. JSON is returned as it is.
func toJSON(contentType string, body []byte) (object []byte, ok bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if contentType != "" && err != nil {
		return nil, false
	}
	switch {
	case media == "", strings.HasSuffix(media, "json"):
		return body, json.Valid(body)
	case strings.HasSuffix(media, "yaml"):
		object, err := yaml.YAMLToJSON(body)
		return object, err == nil
	case media == resource.MediaTypeProtobuf:
		return protobufToJSON(body)
	case media == resource.MediaTypeCBOR:
		var content unstructured.Unstructured
		if _, _, err := resource.DecodeAny(media, body, &content); err != nil {
			return nil, false
		}
		object, err := json.Marshal(content.Object)
		return object, err == nil
	}
	return nil, false
}

// furtherKinds are those that have a protobuf form, as all of Kubernetes do, and are not in
// client-go's scheme: of extensions, and what is answered in place of objects of any kind.
var furtherKinds = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme, metav1beta1.AddMetaToScheme,
	} {
		if err := add(kinds); err != nil {
			panic(err) // unreachable: the kinds do not differ from build to build
		}
	}
	return kinds
})

// newOf returns an empty object of a kind.
func newOf(kind schema.GroupVersionKind) (runtime.Object, error) {
	if object, err := scheme.Scheme.New(kind); err == nil {
		return object, nil
	}
	return furtherKinds().New(kind)
}

// protobufToJSON knows the kinds of Kubernetes, which alone have a protobuf form.
func protobufToJSON(body []byte) ([]byte, bool) {
	kind, _, err := resource.UnwrapProtobuf(body)
	if err != nil {
		return nil, false
	}
	into, err := newOf(kind)
	if err != nil {
		return nil, false
	}
	if _, _, err := resource.DecodeAny(resource.MediaTypeProtobuf, body, into); err != nil {
		return nil, false
	}
	into.GetObjectKind().SetGroupVersionKind(kind)
	object, err := json.Marshal(into)
	return object, err == nil
}

// responseJSON returns the object of an answer as JSON.
func responseJSON(header http.Header, body []byte) ([]byte, bool) {
	if header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, false
		}
		if body, err = io.ReadAll(io.LimitReader(z, maxResponse+1)); err != nil || len(body) > maxResponse {
			return nil, false
		}
	}
	return toJSON(header.Get("Content-Type"), body)
}

// withoutManagedFields returns an object, a list or a table without the managedFields of
// its objects. What is in an item, or in the object of a row, is no list: a document of lists in lists
// would be read once for each level.
func withoutManagedFields(object []byte) []byte {
	return editObject(object, func(content map[string]json.RawMessage) {
		withoutOwn(content)
		edit(content, "items", eachOf(ownWithoutManagedFields))
		edit(content, "rows", eachOf(func(row []byte) []byte {
			return editObject(row, func(members map[string]json.RawMessage) { edit(members, "object", ownWithoutManagedFields) })
		}))
	})
}

// ownWithoutManagedFields returns an object without its managedFields.
func ownWithoutManagedFields(object []byte) []byte { return editObject(object, withoutOwn) }

// withoutOwn removes an object's managedFields from its members.
func withoutOwn(content map[string]json.RawMessage) {
	edit(content, "metadata", func(metadata []byte) []byte {
		return editObject(metadata, func(members map[string]json.RawMessage) { delete(members, "managedFields") })
	})
}

// editObject returns an object as f leaves its members. What has no managedFields, or is no object, as a
// patch that is an array, is returned as it is.
func editObject(object []byte, f func(members map[string]json.RawMessage)) []byte {
	if !bytes.Contains(object, []byte(`"managedFields"`)) {
		return object
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	f(members)
	return marshal(members, object)
}

// edit replaces a member by what f returns for it.
func edit(members map[string]json.RawMessage, name string, f func([]byte) []byte) {
	if member, ok := members[name]; ok {
		members[name] = f(member)
	}
}

// eachOf returns a function that applies f to the elements of an array.
func eachOf(f func([]byte) []byte) func([]byte) []byte {
	return func(array []byte) []byte {
		var elements []json.RawMessage
		if json.Unmarshal(array, &elements) != nil {
			return array
		}
		for i, e := range elements {
			elements[i] = f(e)
		}
		return marshal(elements, array)
	}
}

// marshal returns v as JSON. What was unmarshaled can be marshaled.
func marshal(v any, otherwise []byte) []byte {
	if out, err := json.Marshal(v); err == nil {
		return out
	}
	return otherwise
}
