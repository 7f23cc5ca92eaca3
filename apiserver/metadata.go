package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/resource"
)

// metadataOf returns the value of the metadata member of an object's JSON,
// which follows the resource's prefix. It shares the object's memory.
func metadataOf(res *resource.Resource, shown []byte) []byte {
	rest, ok := bytes.CutPrefix(shown[min(len(res.Prefix()), len(shown)):], []byte(`"metadata":`))
	if !ok {
		return []byte(`{}`)
	}
	return rest[:valueEnd(rest)]
}

// valueEnd returns the length of the JSON object that data begins with. The
// data is known to be well-formed: our own encoder wrote it.
func valueEnd(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// metadataJSON returns the PartialObjectMetadata of an object: its metadata
// bytes in another envelope, without decoding.
func metadataJSON(res *resource.Resource, shown []byte, version string) []byte {
	metadata := metadataOf(res, shown)
	head := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/` + version + `","metadata":`
	out := make([]byte, 0, len(head)+len(metadata)+1)
	out = append(out, head...)
	out = append(out, metadata...)
	return append(out, '}')
}

// metadataProtobuf returns a PartialObjectMetadata, given as JSON, in the
// protobuf envelope.
func metadataProtobuf(partial []byte) ([]byte, error) {
	obj, err := decodePartial(partial)
	if err != nil {
		return nil, err
	}
	return resource.MarshalProtobuf(obj, obj.GroupVersionKind())
}

// metadataMessage is the bare protobuf message, as it stands in a list.
func metadataMessage(partial []byte) ([]byte, error) {
	obj, err := decodePartial(partial)
	if err != nil {
		return nil, err
	}
	return resource.MarshalProtobufMessage(obj)
}

func decodePartial(partial []byte) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(partial, obj); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	return obj, nil
}
