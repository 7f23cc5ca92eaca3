package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Widget"}
}

// rename moves a field of the spec, as *unstructured.Unstructured.
func rename(from, to string) ConvertFunc[*unstructured.Unstructured, *unstructured.Unstructured] {
	return func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		spec, ok := u.Object["spec"].(map[string]any)
		if !ok {
			return nil, errors.New("it has no spec")
		}
		spec[to] = spec[from]
		delete(spec, from)
		return u, nil
	}
}

// toWidget makes a widget of an object whose size is "length", and leaves the
// metadata to the webhook.
func toWidget(u *unstructured.Unstructured) (*widget, error) {
	length, _, err := unstructured.NestedInt64(u.Object, "spec", "length")
	return &widget{Spec: widgetSpec{Size: int(length)}}, err
}

func fromWidget(w *widget) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"length": int64(w.Spec.Size)}}}
	u.SetName(w.Name)
	u.SetLabels(map[string]string{"was": "widget"})
	return u, nil
}

// widgetVersions are v1alpha1, v1beta1 and v1, each with its neighbour.
func widgetVersions() *Handler {
	return Convert(
		Between(kind("v1alpha1"), kind("v1beta1"), rename("len", "length"), rename("length", "len")),
		Between(kind("v1beta1"), kind("v1"), toWidget, fromWidget),
	)
}

func conversion(desired string, objects ...string) string {
	return fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"42","desiredAPIVersion":%q,"objects":[%s]}}`,
		desired, strings.Join(objects, ","))
}

func convert(t *testing.T, h http.Handler, body string) conversionResponse {
	t.Helper()
	w := post(h, "/", body)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var answer conversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.APIVersion != "apiextensions.k8s.io/v1" || answer.Kind != "ConversionReview" || answer.Response.UID != "42" {
		t.Errorf("%s", w.Body)
	}
	return *answer.Response
}

func object(version, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"w","uid":"u","labels":{"a":"b"},"managedFields":[{"manager":"m"}]},"spec":%s}`, version, spec)
}

func TestConvert(t *testing.T) {
	h := widgetVersions()
	got := convert(t, h, conversion("example.com/v1", object("v1alpha1", `{"len":3}`), object("v1", `{"size":4}`), object("v1beta1", `{"length":5}`)))
	if got.Result.Status != "Success" || len(got.ConvertedObjects) != 3 {
		t.Fatalf("%+v", got)
	}
	for n, size := range []int{3, 4, 5} {
		var w widget
		if err := json.Unmarshal(got.ConvertedObjects[n], &w); err != nil {
			t.Fatal(err)
		}
		if w.Spec.Size != size || w.APIVersion != "example.com/v1" || w.Kind != "Widget" || w.UID != "u" || w.Labels["a"] != "b" || len(w.ManagedFields) != 1 {
			t.Errorf("%s", got.ConvertedObjects[n])
		}
	}
	got = convert(t, h, conversion("example.com/v1alpha1", object("v1", `{"size":4}`)))
	want := `{"apiVersion":"example.com/v1alpha1","kind":"Widget","metadata":{"labels":{"was":"widget"},"managedFields":[{"manager":"m"}],"name":"w","uid":"u"},"spec":{"len":4}}`
	if string(got.ConvertedObjects[0]) != want {
		t.Errorf("%s", got.ConvertedObjects[0])
	}
	if got = convert(t, h, conversion("example.com/v1")); got.Result.Status != "Success" || got.ConvertedObjects == nil {
		t.Errorf("of no objects: %+v", got)
	}
}

func TestConversionOfAllOrNone(t *testing.T) {
	h := widgetVersions()
	for name, c := range map[string]struct{ body, want string }{
		"one fails":          {conversion("example.com/v1beta1", object("v1alpha1", `{"len":3}`), object("v1alpha1", `[]`)), `object 1: Widget "w" from v1alpha1 to v1beta1: it has no spec`},
		"an unknown version": {conversion("example.com/v2", object("v1", `{}`)), "no conversion from example.com/v1, Kind=Widget to example.com/v2, Kind=Widget"},
		"another kind":       {conversion("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"Gadget"}`), "no conversion"},
		"no object":          {conversion("example.com/v1", `[]`), "object 0"},
		"no version":         {conversion("a/b/c", object("v1", `{}`)), "a/b/c"},
		"another type":       {conversion("example.com/v1alpha1", object("v1", `{"size":"large"}`)), "decoding"},
	} {
		if got := convert(t, h, c.body); got.Result.Status != "Failure" || !strings.Contains(got.Result.Message, c.want) || len(got.ConvertedObjects) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, body := range map[string]string{
		"no JSON": "x", "no request": `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`,
		"an old version": strings.Replace(conversion("example.com/v1"), "k8s.io/v1", "k8s.io/v1beta1", 1),
	} {
		if w := post(h, "/", body); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestConversionsThatReturnNothingFail(t *testing.T) {
	h := Convert(Between(kind("v1beta1"), kind("v1"), func(*unstructured.Unstructured) (*widget, error) { return nil, nil }, fromWidget))
	if got := convert(t, h, conversion("example.com/v1", object("v1beta1", `{}`))); got.Result.Status != "Failure" {
		t.Errorf("%+v", got)
	}
	// An object without metadata.
	h = widgetVersions()
	if got := convert(t, h, conversion("example.com/v1beta1", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{}}`)); got.Result.Status != "Success" {
		t.Errorf("%+v", got)
	}
}

func TestConversionsAreChecked(t *testing.T) {
	same := rename("a", "b")
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	for name, h := range map[string]*Handler{
		"none":                Convert(),
		"one version":         Convert(Between(kind("v1"), kind("v1"), same, same)),
		"two kinds":           Convert(Between(kind("v1beta1"), other, same, same)),
		"one direction":       Convert(Between(kind("v1beta1"), kind("v1"), same, nil)),
		"one of two is wrong": Convert(Between(kind("v1beta1"), kind("v1"), toWidget, fromWidget), Between(kind("v1"), kind("v1"), same, same)),
	} {
		if h.invalid == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A conversion matches field names by case, as API servers do.
func TestConversionMatchesFieldNamesByCase(t *testing.T) {
	h := widgetVersions()
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","Kind":"Other","METADATA":{"name":"other"},"metadata":{"name":"w"},"spec":{"size":3,"SIZE":99}}`
	response := convert(t, h, conversion("example.com/v1beta1", object))
	if len(response.ConvertedObjects) != 1 || !strings.Contains(string(response.ConvertedObjects[0]), `"length":3`) ||
		!strings.Contains(string(response.ConvertedObjects[0]), `"name":"w"`) {
		t.Errorf("%s %+v", response.ConvertedObjects, response.Result)
	}
}
