package disruption

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
)

// TestInventedControllers: pods of one budget may each name a controller that does not exist. All were asked for, and
// the kinds discovered anew after each.
func TestInventedControllers(t *testing.T) {
	var asked, discovered atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/scale"):
			asked.Add(1)
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case r.URL.Path == "/apis/example.com/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[`+
				`{"name":"widgets","singularName":"widget","kind":"Widget","namespaced":true,"verbs":["get"]},{"name":"widgets/scale","kind":"Scale","group":"autoscaling","version":"v1","namespaced":true,"verbs":["get"]}]}`)
		case r.URL.Path == "/apis":
			discovered.Add(1)
			_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`)
		case r.URL.Path == "/api/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"APIVersions","apiVersion":"v1","versions":["v1"]}`)
		}
	}))
	t.Cleanup(s.Close)
	cl, err := client.New(&rest.Config{Host: s.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.CloseIdleConnections)
	c := &Controller{client: cl, mapper: discovery.NewMapper(cl, discovery.Options{})}
	of := func(n int) (covered []*corev1.Pod) {
		for i := range n {
			name := fmt.Sprint("w", i)
			covered = append(covered, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "example.com/v1", Kind: "Widget", Name: name, UID: types.UID(name), Controller: new(true)},
			}}})
		}
		return covered
	}
	if n, err := c.expected(t.Context(), of(mostAsked)); n != 0 || err != nil {
		t.Errorf("%d pods are expected of controllers that are gone, %v", n, err)
	}
	if asked.Load() != mostAsked || discovered.Load() > 2 {
		t.Errorf("%d requests and %d discoveries for %d controllers", asked.Load(), discovered.Load(), mostAsked)
	}
	asked.Store(0)
	if _, err := c.expected(t.Context(), of(10*mostAsked)); err == nil || asked.Load() > mostAsked {
		t.Errorf("%d requests, %v", asked.Load(), err)
	}
}
