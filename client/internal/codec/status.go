package codec

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DecodeFailure reads the body of a refusal. It returns nil if that is not a Status,
// or one that says Success.
func DecodeFailure(enc Encoding, body []byte) *metav1.Status {
	status := &metav1.Status{}
	switch enc {
	case EncodingJSON:
		if unmarshalJSON(body, status) != nil || status.Kind != "Status" {
			return nil
		}
	case EncodingProtobuf:
		raw, of, err := openEnvelope(body)
		if err != nil || string(of.kind) != "Status" || status.Unmarshal(raw) != nil {
			return nil
		}
	default:
		return nil
	}
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	return status
}

// KindOf returns the kind that an encoded object says it is of, if any.
func KindOf(enc Encoding, data []byte) string {
	if enc == EncodingProtobuf {
		_, of, err := openEnvelope(data)
		if err != nil {
			return ""
		}
		return string(of.kind)
	}
	var meta metav1.TypeMeta
	if json.Unmarshal(data, &meta) != nil {
		return ""
	}
	return meta.Kind
}
