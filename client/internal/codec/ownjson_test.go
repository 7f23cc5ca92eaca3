package codec

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rawObject keeps the JSON that it is decoded from.
type rawObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	json string
}

func (o *rawObject) DeepCopyObject() runtime.Object { c := *o; return &c }

func (o *rawObject) UnmarshalJSON(data []byte) error {
	o.json = string(data)
	return nil
}

// TestTypesThatDecodeThemselves reads a list and events into a type with its own
// UnmarshalJSON, beside which its embedded fields do not count.
func TestTypesThatDecodeThemselves(t *testing.T) {
	c := New(schema.GroupVersionKind{}, FormTyped, func() *rawObject { return new(rawObject) })
	const item = `{"metadata":{"name":"a"}}`
	source := func(text string) *Source { return NewSource(strings.NewReader(text), 1<<20) }
	list, err := c.DecodeList(EncodingJSON, source(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`+item+`]}`))
	if err != nil || len(list.Items) != 1 || list.Items[0].json != item {
		t.Errorf("%+v: %v", list, err)
	}
	events, err := c.NewEventStream(EncodingJSON, source(`{"type":"ADDED","object":`+item+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if event, status, err := events.Next(); err != nil || status != nil || event.Object.json != item {
		t.Errorf("%+v %v: %v", event, status, err)
	}
}
