package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/internal/wiretest"
)

// An object of another kind can be decoded as one of most kinds, with nothing in it but
// the metadata: it is no answer. Neither is one without the name that was asked for.
func TestObjectsOfAnotherKind(t *testing.T) {
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	calls := map[string]func(c *Client) error{
		"get": func(c *Client) error {
			_, err := For[*corev1.Pod](c).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"create": func(c *Client) error {
			_, err := For[*corev1.Pod](c).Create(ctx, pod, metav1.CreateOptions{})
			return err
		},
		"update": func(c *Client) error {
			_, err := For[*corev1.Pod](c).Update(ctx, pod, metav1.UpdateOptions{})
			return err
		},
		"status": func(c *Client) error {
			_, err := For[*corev1.Pod](c).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			return err
		},
		"patch": func(c *Client) error {
			_, err := For[*corev1.Pod](c).Namespace("ns").Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		"get in protobuf": func(c *Client) error {
			_, err := For[*corev1.Pod](c).Namespace("proto").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"list": func(c *Client) error { _, err := For[*corev1.Pod](c).List(ctx, metav1.ListOptions{}); return err },
		"watch": func(c *Client) error {
			w, err := For[*corev1.Pod](c).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.Next()
			return err
		},
		"bookmark": func(c *Client) error {
			w, err := For[*corev1.Pod](c).Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.Next()
			return err
		},
		"dynamic": func(c *Client) error {
			_, err := Dynamic(c, gvr).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"metadata": func(c *Client) error {
			_, err := Metadata(c, gvr).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"scale": func(c *Client) error {
			return For[*corev1.Pod](c).Namespace("ns").SubResource("scale").Update(ctx, "a", &autoscalingv1.Scale{}, metav1.UpdateOptions{})
		},
		"of-scale": func(c *Client) error { // a Scale is what it answers
			_, err := For[*corev1.Pod](c).Namespace("ns").Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "scale")
			return err
		},
		"review": func(c *Client) error {
			_, err := For[*authorizationv1.SubjectAccessReview](c).Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
			return err
		},
	}
	for object, accepted := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`:                        "get create update status patch list watch bookmark dynamic metadata scale of-scale",
		`{"metadata":{"name":"a","resourceVersion":"7"}}`:                                                       "get create update status patch list watch bookmark dynamic metadata scale of-scale review",
		`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}`:                                          "get create update status patch list watch bookmark dynamic metadata scale of-scale",
		`{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`:                                     "get create update status patch list watch bookmark dynamic metadata scale of-scale",
		`{"kind":"Pod","apiVersion":"v2","metadata":{"name":"a","resourceVersion":"7"}}`:                        "dynamic metadata scale of-scale",
		`{"kind":"Pod","apiVersion":"example.com/v1","metadata":{"name":"a","resourceVersion":"7"}}`:            "dynamic metadata scale of-scale",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"data":{"k":"v"}}`: "dynamic metadata scale of-scale",
		`{}`: "create list watch bookmark scale of-scale review",
	} {
		c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			switch {
			case strings.Contains(r.URL.Path, "/proto/"):
				w.Header().Set("Content-Type", string(Protobuf))
				_, _ = w.Write(protobufConfigMap(t))
			case q.Get("allowWatchBookmarks") != "":
				answerJSON(w, http.StatusOK, `{"type":"BOOKMARK","object":`+object+"}\n")
			case q.Get("watch") != "":
				answerJSON(w, http.StatusOK, `{"type":"ADDED","object":`+object+"}\n")
			case strings.HasSuffix(r.URL.Path, "/pods") && r.Method == http.MethodGet:
				answerJSON(w, http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`+object+`]}`)
			default:
				answerJSON(w, http.StatusOK, object)
			}
		}))
		for name, call := range calls {
			err := call(c)
			var decode *DecodeError
			if want := strings.Contains(" "+accepted+" ", " "+name+" "); want && err != nil || !want && !errors.As(err, &decode) {
				t.Errorf("%s answered with %s: got %v", name, object, err)
			}
		}
	}
}

// protobufConfigMap is what a server sends as protobuf.
func protobufConfigMap(t *testing.T) []byte {
	t.Helper()
	var sent []byte
	c, _ := serve(t, Options{ContentType: Protobuf}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		answerJSON(w, http.StatusCreated, `{"metadata":{"name":"a"}}`)
	}))
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
	if _, err := For[*corev1.ConfigMap](c).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return sent
}

// Kinds of one name may be in several groups and versions. Lists and watches, in both encodings,
// take none of another one.
func TestListsAndEventsOfAnotherVersion(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	newPod := func() *corev1.Pod { return &corev1.Pod{} }
	for apiVersion, wrong := range map[string]bool{"v1": false, "": false, "v2": true, "example.com/v1": true} {
		for _, protobuf := range []bool{false, true} {
			c, _ := serve(t, Options{ContentType: Protobuf}, versionedPods(t, apiVersion, protobuf))
			_, err := For[*corev1.Pod](c).List(t.Context(), metav1.ListOptions{})
			var decode *DecodeError
			if errors.As(err, &decode) != wrong || !wrong && err != nil {
				t.Errorf("a list of %q, in protobuf %t: %v", apiVersion, protobuf, err)
			}
			w, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = w.Next(); errors.As(err, &decode) != wrong || !wrong && err != nil {
				t.Errorf("an event of %q, in protobuf %t: %v", apiVersion, protobuf, err)
			}
			w.Close()
			// A registered Go type at another resource has that one's group and version.
			_, err = ForResource(c, widgets, newPod).List(t.Context(), metav1.ListOptions{})
			if right := apiVersion == "example.com/v1" || apiVersion == ""; right != (err == nil) {
				t.Errorf("a list of %q, in protobuf %t, of widgets: %v", apiVersion, protobuf, err)
			}
		}
	}
}

// versionedPods answers with pods that say they are of an apiVersion.
func versionedPods(t *testing.T, apiVersion string, protobuf bool) http.Handler {
	kind := func(name string) *runtime.TypeMeta { return &runtime.TypeMeta{APIVersion: apiVersion, Kind: name} }
	list, pod := wiretest.PodList(1), wiretest.Pod(1)
	envelope := func(of *runtime.TypeMeta, m interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		data, err := (&runtime.Unknown{TypeMeta: *of, Raw: raw}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), data...)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := r.URL.Query().Get("watch") != ""
		switch {
		case protobuf && watched:
			w.Header().Set("Content-Type", string(Protobuf)+";stream=watch")
			_, _ = w.Write(wiretest.Frame(t, watch.Added, envelope(kind("Pod"), pod), true))
		case protobuf:
			w.Header().Set("Content-Type", string(Protobuf))
			_, _ = w.Write(envelope(kind("PodList"), list))
		case watched:
			answerJSON(w, http.StatusOK, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"`+apiVersion+`","metadata":{"name":"a"}}}`)
		default:
			answerJSON(w, http.StatusOK, `{"kind":"PodList","apiVersion":"`+apiVersion+`","metadata":{"resourceVersion":"7"},"items":[]}`)
		}
	})
}
