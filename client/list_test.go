package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podList makes n pods in a list.
func podList(n int) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = "1000"
	for i := range n {
		list.Items = append(list.Items, *samplePod(i))
	}
	return list
}

// samplePod is about as large as pods are.
func samplePod(i int) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = fmt.Sprintf("web-%06d", i), fmt.Sprintf("team-%02d", i%40)
	pod.UID, pod.ResourceVersion = "0a1b2c3d-0000-4000-8000-000000000001", fmt.Sprint(1000+i)
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9", "tier": "front"}
	pod.Annotations = map[string]string{"example.com/checksum": strings.Repeat("ab", 32)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "0a1b2c3d-0000-4000-8000-000000000002"}}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = fmt.Sprintf("node-%d", i%500), corev1.RestartPolicyAlways
	for c := range 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("c%d", c), Image: "registry.example.com/team/web:v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
			Env:          []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "REGION", Value: "eu-west-1"}},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets", ReadOnly: true}},
		})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprintf("c%d", c), Ready: true, Image: "registry.example.com/team/web:v1.2.3", ImageID: "sha256:" + strings.Repeat("0f", 32),
		})
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.%d.%d", i/250%250, i%250)
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return pod
}

// answerWith makes a server that gives the same answer to everything.
func answerWith(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
}

func TestListDecodesItemByItem(t *testing.T) {
	want := podList(300)
	for version, opts := range httpVersions {
		for _, protobuf := range []bool{false, true} {
			body, contentType, err := encode(want, protobuf)
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
		"no items":           {`{"kind":"PodList","metadata":{"resourceVersion":"1"}}`, 0, false},
		"empty items":        {`{"items":[]}`, 0, false},
		"unknown members":    {`{"x":{"items":[1]},"items":[{"metadata":{"name":"a","new":1}}],"y":[[]]}`, 1, false},
		"null metadata":      {`{"metadata":null,"items":[{}]}`, 1, false},
		"broken UTF-8":       {"{\"items\":[{\"metadata\":{\"name\":\"a\xff\"}}]}", 1, false},
		"items not an array": {`{"items":{}}`, 0, true},
		"an item is null":    {`{"items":[null]}`, 0, true},
		"an item is text":    {`{"items":["a"]}`, 0, true},
		"a wrong type":       {`{"items":[{"metadata":{"name":1}}]}`, 0, true},
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

// A list that ends too early is a cut connection, never a shorter list.
func TestCutLists(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		body, contentType, err := encode(podList(2), protobuf)
		if err != nil {
			t.Fatal(err)
		}
		enc := encodingOf(contentType)
		codec := For[*corev1.Pod](nil).codec
		if _, err := decodeList(codec, enc, newSource(strings.NewReader(string(body)), -1)); err != nil {
			t.Fatal(err)
		}
		for cut := range body {
			_, err := decodeList(codec, enc, newSource(strings.NewReader(string(body[:cut])), -1))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s cut after %d of %d bytes: %v", contentType, cut, len(body), err)
			}
		}
	}
}

func TestItemOverTheLimit(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		list := podList(50)
		list.Items[30].Annotations["big"] = strings.Repeat("x", 200_000)
		body, contentType, err := encode(list, protobuf)
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

func FuzzListJSON(f *testing.F) {
	body, _, err := encode(podList(2), false)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(body), `{"items":null}`, `{"items":[{}],"kind":"PodList"}`, `{"items":[`, "\xff", `{"metadata":{"resourceVersion":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzList(t, For[*corev1.Pod](nil).codec, encodingJSON, data)
		fuzzList(t, Dynamic(nil, podsResource).codec, encodingJSON, data)
	})
}

func FuzzListProtobuf(f *testing.F) {
	body, _, err := encode(podList(2), true)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte("k8s\x00"))
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzList(t, For[*corev1.Pod](nil).codec, encodingProtobuf, data)
	})
}

// fuzzList checks what must hold for any bytes: an error or a list without
// holes, and the same one however the bytes are cut into reads.
func fuzzList[T Object](t *testing.T, c *codec[T], enc encoding, data []byte) {
	const limit = 1 << 20
	list, err := decodeList(c, enc, newSource(strings.NewReader(string(data)), limit))
	slow, slowErr := decodeList(c, enc, newSource(&oneByte{data: data}, limit))
	if (err == nil) != (slowErr == nil) {
		t.Fatalf("at once: %v; byte by byte: %v", err, slowErr)
	}
	if err != nil {
		return
	}
	if len(list.Items) != len(slow.Items) || list.ResourceVersion != slow.ResourceVersion {
		t.Fatalf("at once: %d items; byte by byte: %d", len(list.Items), len(slow.Items))
	}
	for i, item := range list.Items {
		if u, ok := any(item).(*unstructured.Unstructured); ok && u.Object == nil {
			t.Fatalf("item %d has no content", i)
		}
	}
}

// oneByte gives one byte for each read.
type oneByte struct{ data []byte }

func (r *oneByte) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	p[0], r.data = r.data[0], r.data[1:]
	return 1, nil
}
