package mergepatch

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestDifference(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `{}`},
		{`{"a":1}`, `{"a":2}`, `{"a":2}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740992}`},
		{`{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"c":1}}`, `{"a":null,"b":{"d":null}}`},
		{`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"a":{"b":1}}`, `{"a":5}`, `{"a":5}`},
		{`{"a":5}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"a":null}`, `{}`, `{}`},
		{`{}`, `{"a":null}`, `{}`},
		{`{}`, `{"a":{}}`, `{"a":{}}`},
		{`{"metadata":{"resourceVersion":"1","managedFields":[{}]}}`, `{"metadata":{"resourceVersion":"2"}}`, `{}`},
	} {
		patch, err := Of(object(t, test.before), object(t, test.after))
		if err != nil {
			t.Errorf("%s to %s: %v", test.before, test.after, err)
			continue
		}
		if got, _ := json.Marshal(patch); string(got) != test.want {
			t.Errorf("%s to %s: got %s, want %s", test.before, test.after, got, test.want)
		}
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetName("a")
	return u
}

func TestLock(t *testing.T) {
	patch := map[string]any{"metadata": map[string]any{"labels": nil}}
	if err := Lock(patch, "7"); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(patch); string(got) != `{"metadata":{"labels":null,"resourceVersion":"7"}}` {
		t.Errorf("got %s", got)
	}
	if err := Lock(patch, ""); err == nil {
		t.Error("a lock without a resourceVersion was accepted")
	}
}

func TestTwoObjects(t *testing.T) {
	named := func(name string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	}
	a, b, c := named("a", "1"), named("b", "1"), named("a", "2")
	var none *corev1.Pod
	for want, pair := range map[string][2]*corev1.Pod{
		"cannot rename": {a, b}, "different objects": {a, c}, "is nil": {a, none}, "name is empty": {named("", "1"), named("", "1")},
	} {
		if _, err := Of(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
