package encoding

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
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
// data is known to be well-formed: our own encoder wrote it. Strings, which
// are most of it, are skipped at the speed of memory.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i+1:])
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// stringEnd returns the length of a JSON string without its opening quote:
// up to the next quote that no odd number of backslashes precedes.
func stringEnd(data []byte) int {
	for end := 0; ; end++ {
		i := bytes.IndexByte(data[end:], '"')
		if i < 0 {
			return len(data)
		}
		end += i
		slashes := 0
		for slashes < end && data[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
	}
}

// metadataJSON returns the PartialObjectMetadata of an object: its metadata
// bytes in another envelope, without decoding.
func metadataJSON(res *resource.Resource, shown []byte, version string) []byte {
	metadata := metadataOf(res, shown)
	head := metadataHead(version)
	out := make([]byte, 0, len(head)+len(metadata)+1)
	out = append(out, head...)
	out = append(out, metadata...)
	return append(out, '}')
}

func metadataHead(version string) string {
	return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/` + version + `","metadata":`
}

// metadataProtobuf returns a PartialObjectMetadata, given as JSON, in the
// protobuf envelope.
func metadataProtobuf(partial []byte, version string) ([]byte, error) {
	raw, err := resource.AppendPartialProtobuf(nil, partial)
	if err != nil {
		return nil, err
	}
	return resource.AppendProtobufEnvelope(nil, partialKind(version), raw), nil
}

func partialKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "meta.k8s.io", Version: version, Kind: "PartialObjectMetadata"}
}

func decodePartial(partial []byte) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(partial, obj); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	return obj, nil
}
