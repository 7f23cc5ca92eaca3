package reflector_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
)

// printer is a store that prints its calls.
type printer struct{ stop context.CancelFunc }

func (p printer) Add(obj *corev1.Pod) error {
	fmt.Println("add", obj.Name)
	return nil
}

func (p printer) Update(obj *corev1.Pod) error {
	fmt.Println("update", obj.Name)
	return nil
}

func (p printer) Delete(obj *corev1.Pod) error {
	fmt.Println("delete", obj.Name)
	p.stop()
	return nil
}

func (p printer) Replace(list []*corev1.Pod, version string) error {
	fmt.Println(len(list), "pods at version", version)
	return nil
}

func ExampleReflector() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `
			{"type":"ADDED","object":{"metadata":{"name":"web","resourceVersion":"4"}}}
			{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}
			{"type":"MODIFIED","object":{"metadata":{"name":"web","resourceVersion":"6"}}}
			{"type":"DELETED","object":{"metadata":{"name":"web","resourceVersion":"7"}}}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := reflector.Resource(client.For[*corev1.Pod](c), nil)
	r, err := reflector.New[*corev1.Pod](pods, printer{cancel}, reflector.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("reached", r.LastSyncResourceVersion())
	// Output:
	// 1 pods at version 5
	// update web
	// delete web
	// reached 7
}
