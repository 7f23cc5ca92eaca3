package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// answerWith makes a server that gives the same answer to everything.
func answerWith(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
}

func TestListDecodesItemByItem(t *testing.T) {
	want := wiretest.PodList(300)
	for version, opts := range httpVersions {
		for _, protobuf := range []bool{false, true} {
			body, contentType, err := codec.Encode(scheme.Default, want, protobuf)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(version+" "+contentType, func(t *testing.T) {
				client, _ := serve(t, opts, answerWith(contentType+"; charset=utf-8", body))
				list, err := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
				if err != nil || list.ResourceVersion != "1000" || len(list.Items) != len(want.Items) {
					t.Fatalf("%d items, version %q, %v", len(list.Items), list.ResourceVersion, err)
				}
				for i, got := range list.Items {
					if got.Name != want.Items[i].Name || got.Spec.Containers[1].Image != want.Items[i].Spec.Containers[1].Image {
						t.Fatalf("item %d: %+v", i, got)
					}
				}
				meta, err := Metadata(client, podsResource).List(t.Context(), metav1.ListOptions{})
				if err != nil || len(meta.Items) != 300 || meta.Items[7].Labels["app"] != "web" {
					t.Errorf("metadata: %v", err)
				}
			})
		}
	}
}

// TestListsOfAnotherSuccess: a list of 206 may be a part of one, and what it lacks would be taken for deleted.
func TestListsOfAnotherSuccess(t *testing.T) {
	body, contentType, err := codec.Encode(scheme.Default, wiretest.PodList(3), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{http.StatusCreated, http.StatusAccepted, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusPartialContent} {
		client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			if code != http.StatusNoContent {
				_, _ = w.Write(body)
			}
		}))
		pods := For[*corev1.Pod](client)
		_, listErr := pods.List(t.Context(), metav1.ListOptions{})
		var pageErr error
		for _, err := range pods.Pages(t.Context(), metav1.ListOptions{}) {
			pageErr = err
		}
		for _, err := range []error{listErr, pageErr} {
			var decode *DecodeError
			var other *UnexpectedResponseError
			says := fmt.Sprintf("the answer to the list is %d %s,", code, http.StatusText(code))
			if !errors.As(err, &decode) || !errors.As(err, &other) || other.Code != code || IsStatus(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("%d: %v, want %q", code, err, says)
			}
		}
	}
}

func TestDynamicListsNameTheKindOfEachItem(t *testing.T) {
	for name, body := range map[string]string{
		"built-in":       `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"a"}}]}`,
		"custom":         `{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}]}`,
		"kind after all": `{"items":[{"metadata":{"name":"a"}}],"apiVersion":"v1","kind":"PodList"}`,
	} {
		client, _ := serve(t, Options{}, answerWith("application/json", []byte(body)))
		list, err := Dynamic(client, podsResource).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if got := list.Items[0]; got.GetKind() != "Pod" || got.GetAPIVersion() != "v1" || got.GetName() != "a" {
			t.Errorf("%s: %v", name, got.Object)
		}
	}
}

func TestOddLists(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		items int
		fails bool
	}{
		"null items":         {`{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":null}`, 0, false},
		"no items":           {`{"kind":"PodList","metadata":{"resourceVersion":"1"}}`, 0, true},
		"empty items":        {`{"items":[]}`, 0, false},
		"a kind alone":       {`{"kind":"PodList","apiVersion":"v1","metadata":{}}`, 0, true},
		"unknown members":    {`{"x":{"items":[1]},"items":[{"metadata":{"name":"a","new":1}}],"y":[[]]}`, 1, false},
		"null metadata":      {`{"metadata":null,"items":[{}]}`, 1, false},
		"broken UTF-8":       {"{\"items\":[{\"metadata\":{\"name\":\"a\xff\"}}]}", 1, false},
		"items not an array": {`{"items":{}}`, 0, true},
		"an item is null":    {`{"items":[null]}`, 0, true},
		"an item is text":    {`{"items":["a"]}`, 0, true},
		"a wrong type":       {`{"items":[{"metadata":{"name":1}}]}`, 0, true},
		"nothing":            {`{}`, 0, true},
		"another document":   {`{"status":"maintenance"}`, 0, true},
		"an object":          {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`, 0, true},
		"a Status":           {`{"kind":"Status","apiVersion":"v1","status":"Failure"}`, 0, true},
		"not an object":      {`[]`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := serve(t, Options{}, answerWith("application/json", []byte(test.body)))
			list, err := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
			var decode *DecodeError
			if test.fails {
				if !errors.As(err, &decode) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || list.Items == nil || len(list.Items) != test.items {
				t.Errorf("got %+v, %v", list, err)
			}
		})
	}
}

// Items do not say their kind, and an empty list has none: a list of another kind would be one of
// pods, or delete them.
func TestListsOfAnotherKind(t *testing.T) {
	services := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	for _, list := range []*corev1.ServiceList{services, {ListMeta: metav1.ListMeta{ResourceVersion: "1"}}} {
		for _, protobuf := range []bool{false, true} {
			body, contentType, err := codec.Encode(scheme.Default, list, protobuf)
			if err != nil {
				t.Fatal(err)
			}
			client, _ := serve(t, Options{}, answerWith(contentType, body))
			_, err = For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
			if decode := (*DecodeError)(nil); !errors.As(err, &decode) {
				t.Errorf("%s with %d items: got %v", contentType, len(list.Items), err)
			}
			if _, err = For[*corev1.Service](client).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("%s with %d items: %v", contentType, len(list.Items), err)
			}
			if protobuf {
				continue
			}
			// Without a Go type that implies the kind, nothing does.
			_, dynamic := Dynamic(client, podsResource).List(t.Context(), metav1.ListOptions{})
			_, metadata := Metadata(client, podsResource).List(t.Context(), metav1.ListOptions{})
			if err := errors.Join(dynamic, metadata); err != nil {
				t.Errorf("%s with %d items: %v", contentType, len(list.Items), err)
			}
		}
	}
	for body, fails := range map[string]bool{
		`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`:        false,
		`{"metadata":{"resourceVersion":"1"},"items":[]}`:                                        false,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`:         true,
		`{"items":[],"kind":"ConfigMapList","apiVersion":"v1","metadata":{}}`:                    true,
		`{"kind":"PodMetricsList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{}}]}`: true,
	} {
		client, _ := serve(t, Options{}, answerWith("application/json", []byte(body)))
		_, err := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
		if decode := (*DecodeError)(nil); errors.As(err, &decode) != fails || !fails && err != nil {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

// What is no list must not pass for an empty one, whatever the client makes of items.
func TestObjectsInPlaceOfLists(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		body, contentType, err := codec.Encode(scheme.Default, wiretest.Pod(1), protobuf)
		if err != nil {
			t.Fatal(err)
		}
		client, _ := serve(t, Options{}, answerWith(contentType, body))
		_, typed := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
		_, metadata := Metadata(client, podsResource).List(t.Context(), metav1.ListOptions{})
		_, dynamic := Dynamic(client, podsResource).List(t.Context(), metav1.ListOptions{})
		for _, err := range []error{typed, metadata, dynamic} {
			if decode := (*DecodeError)(nil); !errors.As(err, &decode) {
				t.Errorf("%s: got %v", contentType, err)
			}
		}
	}
}

func TestItemOverTheLimit(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		list := wiretest.PodList(50)
		list.Items[30].Annotations["big"] = strings.Repeat("x", 200_000)
		body, contentType, err := codec.Encode(scheme.Default, list, protobuf)
		if err != nil {
			t.Fatal(err)
		}
		for limit, fails := range map[int64]bool{100_000: true, 300_000: false, -1: false} {
			client, _ := serve(t, Options{MaxFrameBytes: limit}, answerWith(contentType, body))
			_, err := For[*corev1.Pod](client).List(t.Context(), metav1.ListOptions{})
			if errors.Is(err, ErrFrameTooLarge) != fails || !fails && err != nil {
				t.Errorf("%s, limit %d: %v", contentType, limit, err)
			}
		}
	}
}
