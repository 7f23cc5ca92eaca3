package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// A program that cleans up after an object is gone must not take a proxy's page for
// the API server's word.
func ExampleIsStatus() {
	err := fmt.Errorf("get: %w", apierrors.NewNotFound(corev1.Resource("pods"), "web-0"))
	if apierrors.IsNotFound(err) && client.IsStatus(err) {
		fmt.Println("the API server does not have the pod")
	}
	// Output: the API server does not have the pod
}

// Two clients, as of two components in one process, share 50 requests a second.
func ExampleOptions_rateLimiter() {
	server := tinyServer()
	defer server.Close()
	limiter := rate.NewLimiter(50, 100)
	for _, agent := range []string{"scheduler", "controller"} {
		c, err := client.New(&rest.Config{Host: server.URL}, client.Options{UserAgent: agent, RateLimiter: limiter})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = client.For[*corev1.Pod](c).List(context.Background(), metav1.ListOptions{})
		fmt.Println(agent, err, c.Stats().Requests)
	}
	// Output:
	// scheduler <nil> 1
	// controller <nil> 1
}

func ExampleClient_Raw() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.Raw(context.Background(), client.RawRequest{Path: "/readyz"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), err)
	// Output: 200 ok <nil>
}
