package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// admission is a request as a kube-apiserver sends it.
func admission(operation, object, old string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{
		"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",
		"kind":{"group":"example.com","version":"v1","kind":"Widget"},
		"resource":{"group":"example.com","version":"v1","resource":"widgets"},
		"requestKind":{"group":"example.com","version":"v1","kind":"Widget"},
		"requestResource":{"group":"example.com","version":"v1","resource":"widgets"},
		"name":"w","namespace":"ns","operation":%q,
		"userInfo":{"username":"jane","uid":"1","groups":["system:authenticated"],"extra":{"k":["v"]}},
		"object":%s,"oldObject":%s,"dryRun":false,
		"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}`, operation, object, old)
}

const plainWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"ns","newField":1},
	"spec":{"size":3,"unknown":{"a":1},"parts":[{"name":"a","count":1,"unknown":true}],"price":1.50}}`

// review posts a review and returns the response in its answer.
func review(t *testing.T, h http.Handler, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(h, "/?timeout=10s", body)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.APIVersion != "admission.k8s.io/v1" || answer.Kind != "AdmissionReview" || answer.Response.UID != "705ab4f5-6393-11e8-b7cc-42010a800002" {
		t.Errorf("%+v", answer)
	}
	return answer.Response
}

func TestValidate(t *testing.T) {
	h := Validate(func(_ context.Context, r *Request[*widget]) error {
		if r.Admission.UserInfo.Username != "jane" || r.DryRun {
			return errors.New("the request is not complete")
		}
		switch r.Operation {
		case admissionv1.Delete:
			if r.Object != nil || r.Old.Spec.Size != 3 {
				return errors.New("the deleted object is missing")
			}
		case admissionv1.Create:
			if r.Old != nil {
				return errors.New("there was none")
			}
			r.Warn("size %d is odd", r.Object.Spec.Size)
			r.Audit("size", "odd")
			return field.Invalid(field.NewPath("spec", "size"), r.Object.Spec.Size, "must be even")
		case admissionv1.Update:
			return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, r.Object.Name,
				field.ErrorList{field.Forbidden(field.NewPath("spec"), "must not change")})
		}
		return nil
	})
	created := review(t, h, admission("CREATE", plainWidget, "null"))
	if created.Allowed || created.Result.Code != http.StatusForbidden || !strings.Contains(created.Result.Message, "must be even") ||
		!reflect.DeepEqual(created.Warnings, []string{"size 3 is odd"}) || created.AuditAnnotations["size"] != "odd" || created.Patch != nil {
		t.Errorf("%+v", created)
	}
	if updated := review(t, h, admission("UPDATE", plainWidget, plainWidget)); updated.Allowed || updated.Result.Code != http.StatusUnprocessableEntity || updated.Result.Details == nil {
		t.Errorf("%+v", updated)
	}
	if deleted := review(t, h, admission("DELETE", "null", plainWidget)); !deleted.Allowed || deleted.Result != nil {
		t.Errorf("%+v", deleted)
	}
}

func TestMutateSendsWhatItChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		mutate func(*widget)
		want   string
	}{
		{"nothing", func(*widget) {}, ``},
		{"a field", func(w *widget) { w.Spec.Size = 4 }, `[{"op":"replace","path":"/spec/size","value":4}]`},
		{"a label", func(w *widget) { w.Labels = map[string]string{"a/b": "c"} }, `[{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}}]`},
		{"an element", func(w *widget) { w.Spec.Parts = append(w.Spec.Parts, part{Name: "b"}) }, `[{"op":"add","path":"/spec/parts/1","value":{"name":"b"}}]`},
		{"an element before", func(w *widget) { w.Spec.Parts = append([]part{{Name: "b"}}, w.Spec.Parts...) }, `[{"op":"add","path":"/spec/parts/0","value":{"name":"b"}}]`},
		{"in an element", func(w *widget) { w.Spec.Parts[0].Count = 2 }, `[{"op":"replace","path":"/spec/parts/0/count","value":2}]`},
		{"a removal", func(w *widget) { w.Spec.Size = 0 }, `[{"op":"remove","path":"/spec/size"}]`},
		{"what was not there", func(w *widget) { w.Status.Ready = true }, `[{"op":"add","path":"/status","value":{"ready":true}}]`},
	} {
		h := Mutate(func(_ context.Context, r *Request[*widget]) error { c.mutate(r.Object); return nil })
		got := review(t, h, admission("CREATE", plainWidget, "null"))
		if !got.Allowed || string(got.Patch) != c.want || (got.PatchType == nil) != (c.want == "") || got.PatchType != nil && *got.PatchType != "JSONPatch" {
			t.Errorf("%s: %s", c.name, got.Patch)
		}
	}
}

func TestMutateWithoutAGoType(t *testing.T) {
	h := Mutate(func(_ context.Context, r *Request[*unstructured.Unstructured]) error {
		if r.Operation == admissionv1.Delete {
			return nil
		}
		return unstructured.SetNestedField(r.Object.Object, "blue", "spec", "color")
	})
	if got := review(t, h, admission("CREATE", plainWidget, "null")); string(got.Patch) != `[{"op":"add","path":"/spec/color","value":"blue"}]` {
		t.Errorf("%s", got.Patch)
	}
	if got := review(t, h, admission("DELETE", "null", plainWidget)); !got.Allowed || got.Patch != nil {
		t.Errorf("%+v", got)
	}
}

func TestDeniedMutationsHaveNoPatch(t *testing.T) {
	h := Mutate(func(_ context.Context, r *Request[*widget]) error { r.Object.Spec.Size = 7; return errors.New("no") })
	if got := review(t, h, admission("CREATE", plainWidget, "null")); got.Allowed || got.Patch != nil || got.Result.Message != "no" {
		t.Errorf("%+v", got)
	}
}

// What is not an answer of the webhook must not look like one: the API server's
// failurePolicy decides.
func TestWhatFailsIsNoDenial(t *testing.T) {
	never := Validate(func(context.Context, *Request[*widget]) error { t.Error("called"); return nil })
	never.MaxBodyBytes = 10_000
	for _, c := range []struct {
		name, body string
		code       int
	}{
		{"no JSON", "hello", http.StatusBadRequest},
		{"empty", "", http.StatusBadRequest},
		{"null", "null", http.StatusBadRequest},
		{"another kind", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, http.StatusBadRequest},
		{"an old version", strings.Replace(admission("CREATE", plainWidget, "null"), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), http.StatusBadRequest},
		{"no request", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, http.StatusBadRequest},
		{"another type", admission("CREATE", `{"spec":[]}`, "null"), http.StatusBadRequest},
		{"another old type", admission("UPDATE", plainWidget, `"text"`), http.StatusBadRequest},
		{"too large", admission("CREATE", `{"spec":{"color":"`+strings.Repeat("x", 10_000)+`"}}`, "null"), http.StatusRequestEntityTooLarge},
	} {
		if w := post(never, "/", c.body); w.Code != c.code {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	if w := post(&Handler{}, "/", admission("CREATE", plainWidget, "null")); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "make it by Validate") {
		t.Errorf("a handler without a function: %d %s", w.Code, w.Body)
	}
	unbounded := Validate(func(context.Context, *Request[*widget]) error { return nil })
	unbounded.MaxBodyBytes = 0
	if w := post(unbounded, "/", admission("CREATE", plainWidget, "null")); w.Code != http.StatusOK {
		t.Errorf("a handler with the default bound: %d %s", w.Code, w.Body)
	}
	panics := Validate(func(context.Context, *Request[*widget]) error { panic("a bug") })
	if w := post(panics, "/", admission("CREATE", plainWidget, "null")); w.Code != http.StatusInternalServerError {
		t.Errorf("a panic: %d %s", w.Code, w.Body)
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		slow := Validate(func(ctx context.Context, _ *Request[*widget]) error { <-ctx.Done(); return ctx.Err() })
		if w := post(slow, "/?timeout=3s", admission("CREATE", plainWidget, "null")); w.Code != http.StatusInternalServerError || time.Since(begun) != 3*time.Second {
			t.Errorf("out of time after %v: %d %s", time.Since(begun), w.Code, w.Body)
		}
	})
}

func TestOnlyReviewsAreRead(t *testing.T) {
	h := Validate(func(context.Context, *Request[*widget]) error { return nil })
	for _, c := range []struct {
		method, content string
		code            int
	}{
		{http.MethodGet, "application/json", http.StatusMethodNotAllowed},
		{http.MethodPost, "text/plain", http.StatusUnsupportedMediaType},
		{http.MethodPost, "", http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/json; charset=utf-8", http.StatusOK},
	} {
		if got := status(h, c.method, c.content, admission("CREATE", plainWidget, "null")); got != c.code {
			t.Errorf("%s %q: %d, want %d", c.method, c.content, got, c.code)
		}
	}
}

// API servers match field names by case, and so a webhook must: else it would decide
// about the value of a field that the server does not know.
func TestFieldNamesAreMatchedByCase(t *testing.T) {
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","NAME":"other"},"spec":{"size":1,"SIZE":99},"SPEC":{"size":98}}`
	check := func(_ context.Context, r *Request[*widget]) error {
		if r.Object.Spec.Size != 1 || r.Object.Name != "w" {
			return fmt.Errorf("size %d of %q", r.Object.Spec.Size, r.Object.Name)
		}
		return nil
	}
	body := strings.Replace(admission("CREATE", object, "null"), `"name":"w","namespace":"ns",`, `"name":"w","Operation":"DELETE","namespace":"ns",`, 1)
	if answer := review(t, Validate(check), body); !answer.Allowed {
		t.Errorf("a validator sees %s", answer.Result.Message)
	}
	mutate := Mutate(func(ctx context.Context, r *Request[*widget]) error {
		if r.Operation != admissionv1.Create {
			return fmt.Errorf("the operation is %s", r.Operation)
		}
		r.Object.Spec.Size = 2
		return nil
	})
	if answer := review(t, mutate, body); !answer.Allowed || string(answer.Patch) != `[{"op":"replace","path":"/spec/size","value":2}]` {
		t.Errorf("a mutator answers %s", answer.Patch)
	}
}
