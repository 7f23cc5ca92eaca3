package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object is what the checks look at in any object.
type object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Data            map[string]string `json:"data"`
}

func (o object) version() string { return o.Metadata.ResourceVersion }

// list is what the checks look at in any list.
type list struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta `json:"metadata"`
	Items           []object        `json:"items"`
}

func (l *list) names() []string {
	names := make([]string, 0, len(l.Items))
	for _, item := range l.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}

func (l *list) find(name string) *object {
	for i := range l.Items {
		if l.Items[i].Metadata.Name == name {
			return &l.Items[i]
		}
	}
	return nil
}

// event is one document of a watch stream.
type event struct {
	Type   string
	Object object
	Raw    json.RawMessage // the object as it was sent
}

func (v event) String() string {
	return fmt.Sprintf("%s %s@%s", v.Type, v.Object.Metadata.Name, v.Object.version())
}

// initialEnd says whether the event announces the end of the initial events.
func (v event) initialEnd() bool {
	return v.Type == "BOOKMARK" && v.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// status decodes an ERROR's object.
func (v event) status() (*metav1.Status, error) {
	s := new(metav1.Status)
	if err := json.Unmarshal(v.Raw, s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" {
		return nil, fmt.Errorf("the object of the ERROR is no v1 Status: %s", excerpt(v.Raw))
	}
	return s, nil
}

func decodeEvent(document []byte) (event, error) {
	var wire struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(document, &wire); err != nil {
		return event{}, err
	}
	v := event{Type: wire.Type, Raw: wire.Object}
	if v.Type == "ERROR" {
		return v, nil
	}
	err := json.Unmarshal(wire.Object, &v.Object)
	return v, err
}

// parseVersion reads a resource version by the letter of KEP-5504. (Servers
// may go up to 2^128-1; nothing that these checks write does.)
func parseVersion(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || s[0] == '0' {
		return 0, fmt.Errorf("resourceVersion %q is no decimal number without a leading zero", s)
	}
	return n, nil
}

const longestExcerpt = 300

func excerpt(b []byte) string {
	if len(b) > longestExcerpt {
		return fmt.Sprintf("%s... (%d bytes)", b[:longestExcerpt], len(b))
	}
	return string(b)
}
