package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageServer serves three pages of two pods each; the answers for continue tokens
// in broken are replaced.
func pageServer(broken map[string]string) *recorder {
	return &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("continue")
		if answer, ok := broken[token]; ok {
			code := http.StatusOK
			if strings.Contains(answer, "410") {
				code = http.StatusGone
			}
			answerJSON(w, code, answer)
			return
		}
		page := map[string]int{"": 0, "c1": 1, "c2": 2}[token]
		next := []string{"c1", "c2", ""}[page]
		answerJSON(w, http.StatusOK, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},`+
			`"items":[{"metadata":{"name":"p%d"}},{"metadata":{"name":"p%d"}}]}`, next, 2*page, 2*page+1))
	}}
}

func TestPagesFollowTheContinueToken(t *testing.T) {
	server := pageServer(nil)
	client, _ := serve(t, Options{}, server)
	pods := For[*corev1.Pod](client)
	objects := pods.All(t.Context(), metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	for range 2 { // the same loop twice
		var names []string
		for pod, err := range objects {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, pod.Name)
		}
		if got := strings.Join(names, " "); got != "p0 p1 p2 p3 p4 p5" {
			t.Errorf("got %s", got)
		}
	}
	if got := server.all[0].uri; got != "/api/v1/pods?labelSelector=a%3Db&limit=500&resourceVersion=7&resourceVersionMatch=Exact" {
		t.Errorf("the first page: %s", got)
	}
	if got := server.all[1].uri; got != "/api/v1/pods?continue=c1&labelSelector=a%3Db&limit=500" {
		t.Errorf("the second page: %s", got)
	}
}

func TestPagesEndWithTheLoop(t *testing.T) {
	server := pageServer(nil)
	client, _ := serve(t, Options{}, server)
	for page, err := range For[*corev1.Pod](client).Pages(t.Context(), metav1.ListOptions{Limit: 2}) {
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("got %v, %v", page, err)
		}
		break
	}
	for range For[*corev1.Pod](client).All(t.Context(), metav1.ListOptions{Limit: 2}) {
		break
	}
	if len(server.all) != 2 {
		t.Errorf("%d requests for two first pages", len(server.all))
	}
}

func TestPagesExpire(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`
	collect := func(broken map[string]string) (objects int, last error) {
		client, _ := serve(t, Options{}, pageServer(broken))
		for _, err := range For[*corev1.Pod](client).All(t.Context(), metav1.ListOptions{}) {
			if last != nil {
				t.Error("the loop went on after an error")
			}
			if last = err; err == nil {
				objects++
			}
		}
		return objects, last
	}
	objects, err := collect(map[string]string{"c2": gone})
	if objects != 4 || !errors.Is(err, ErrPagesExpired) || !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "after 4 objects: list again") {
		t.Errorf("in the middle: %d objects, %v", objects, err)
	}
	// The first page may be of a resourceVersion that is gone: that is an error of
	// the caller's options.
	if _, err := collect(map[string]string{"": gone}); !apierrors.IsResourceExpired(err) || errors.Is(err, ErrPagesExpired) {
		t.Errorf("at the beginning: %v", err)
	}
	if _, err := collect(map[string]string{"c1": `{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"c1"},"items":[]}`}); err == nil || !strings.Contains(err.Error(), "does not advance") {
		t.Errorf("a token that stays: %v", err)
	}
	if objects, err := collect(map[string]string{"c2": `{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"c1"},"items":[]}`}); err == nil || !strings.Contains(err.Error(), "does not advance") || objects > 20 {
		t.Errorf("tokens in turn: %d objects, %v", objects, err)
	}
}

// Objects that are in no page would be taken for objects that do not exist.
func TestPagesOfAnotherList(t *testing.T) {
	for name, answer := range map[string]string{
		"another version":  `{"kind":"PodList","metadata":{"resourceVersion":"8"},"items":[{"metadata":{"name":"a"}}]}`,
		"no version":       `{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"a"}}]}`,
		"no items":         `{"kind":"PodList","metadata":{}}`,
		"another document": `{"status":"maintenance"}`,
		"an object":        `{"kind":"Pod","metadata":{"name":"a","resourceVersion":"9"}}`,
		"nothing":          `{}`,
	} {
		client, _ := serve(t, Options{}, pageServer(map[string]string{"c2": answer}))
		objects := 0
		var last error
		for _, err := range For[*corev1.Pod](client).All(t.Context(), metav1.ListOptions{}) {
			if last = err; err == nil {
				objects++
			}
		}
		if decode := (*DecodeError)(nil); !errors.As(last, &decode) || objects != 4 {
			t.Errorf("%s: %d objects, %v", name, objects, last)
		}
	}
}

func TestWatchEventsEndWithTheStream(t *testing.T) {
	const added = `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`
	for body, want := range map[string]string{
		added + added: "a a",
		added + `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`: "a expired",
		added + `{"type":`: "a cut",
	} {
		client, _ := serve(t, Options{}, answerWith("application/json", []byte(body)))
		watch, err := For[*corev1.Pod](client).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for event, err := range watch.Events() {
			switch {
			case apierrors.IsResourceExpired(err):
				got = append(got, "expired")
			case err != nil:
				got = append(got, "cut")
			default:
				got = append(got, event.Object.Name)
			}
		}
		if joined := strings.Join(got, " "); joined != want {
			t.Errorf("got %s, want %s", joined, want)
		}
		if _, err := watch.Next(); err == nil {
			t.Error("the watch is still open")
		}
	}
}
