package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// tinyServer is an API server with one pod.
func tinyServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const pod = `{"metadata":{"name":"web","namespace":"default","resourceVersion":"7","labels":{"app":"web"}}}`
		if r.URL.Query().Get("watch") == "true" {
			_, _ = io.WriteString(w, `{"type":"MODIFIED","object":`+pod+`}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`+pod+`]}`)
	}))
}

func ExampleFor() {
	server := tinyServer()
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := client.For[*corev1.Pod](c).Namespace("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range list.Items {
		fmt.Println(pod.Name, "at version", list.ResourceVersion)
	}
	// Output: web at version 7
}

func ExampleResource_Watch() {
	server := tinyServer()
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	watch, err := client.For[*corev1.Pod](c).Watch(context.Background(), metav1.ListOptions{ResourceVersion: "6"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	for {
		event, err := watch.Next()
		if errors.Is(err, io.EOF) {
			fmt.Println("the server ended the watch")
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Object.Name)
	}
	// Output:
	// MODIFIED web
	// the server ended the watch
}

func ExampleDynamic() {
	server := tinyServer()
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := client.Dynamic(c, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	list, err := pods.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.Items[0].GetKind(), list.Items[0].GetLabels()["app"])
	// Output: Pod web
}
