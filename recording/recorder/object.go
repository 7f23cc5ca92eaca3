package recorder

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is an object of any kind, as the bytes that the server sent. Of its metadata,
// only what a recording needs is decoded.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	json []byte
}

// DeepCopyObject implements runtime.Object. The bytes are never modified, and shared.
func (o *object) DeepCopyObject() runtime.Object {
	out := &object{TypeMeta: o.TypeMeta, json: o.json}
	o.DeepCopyInto(&out.ObjectMeta)
	return out
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(data []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name            string            `json:"name"`
			Namespace       string            `json:"namespace"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	o.TypeMeta = head.TypeMeta
	o.Name, o.Namespace, o.ResourceVersion = head.Metadata.Name, head.Metadata.Namespace, head.Metadata.ResourceVersion
	o.Annotations = head.Metadata.Annotations // a bookmark may have one that matters
	o.json = append([]byte(nil), data...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) { return o.json, nil }

// key is the object's name in a recording.
func (o *object) key() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// revision is the object's resourceVersion.
func (o *object) revision() (int64, error) { return parseVersion(o.ResourceVersion) }

// value is the object as JSON that names its kind. Items of a list do not.
func (o *object) value(kind, apiVersion string) []byte {
	if o.Kind != "" {
		return o.json
	}
	out := fmt.Appendf(make([]byte, 0, len(o.json)+64), `{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
	return append(out, o.json[1:]...)
}

// parseVersion returns a resourceVersion as the number that it is on all servers with a
// store of one revision.
func parseVersion(version string) (int64, error) {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the resourceVersion %q is not a number: this server's history cannot be recorded", version)
	}
	return n, nil
}
