package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// widget is a custom resource of a program, in its stored version.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec   `json:"spec"`
	Status            widgetStatus `json:"status"`
}

type widgetSpec struct {
	Size  int     `json:"size,omitempty"`
	Color string  `json:"color,omitempty"`
	Parts []part  `json:"parts,omitempty"`
	Shape *shape  `json:"shape,omitempty"`
	Price float64 `json:"price,omitempty"`
}

type part struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
}

type shape struct {
	Round bool `json:"round,omitempty"`
}

type widgetStatus struct {
	Ready bool `json:"ready"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// post sends a review to a handler as API servers do.
func post(h http.Handler, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func status(h http.Handler, method, contentType, body string) int {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}
