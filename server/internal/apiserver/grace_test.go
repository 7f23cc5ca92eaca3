package apiserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// boundPod is a pod on a node, with more members of its spec.
func boundPod(more string) string {
	return fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"a","image":"i"}]%s}}`, more)
}

const isGone = -1

// graceOf returns the seconds that a pod has got to end, or isGone.
func (c *cluster) graceOf(path string) int64 {
	c.t.Helper()
	got := c.get(path)
	if got.code == 404 {
		return isGone
	}
	var pod metav1.PartialObjectMetadata
	got.into(c.t, &pod)
	if pod.DeletionGracePeriodSeconds == nil {
		c.t.Fatalf("%s is not marked: %s", path, got.body)
	}
	return *pod.DeletionGracePeriodSeconds
}

// TestGrace: the seconds that a pod gets are those of the request, or else its own. Less than none is one, and a
// further request may only take some away. The periods are so long that the machine's clock decides nothing.
func TestGrace(t *testing.T) {
	c := newWritable(t)
	const own, shorter, longer = `,"terminationGracePeriodSeconds":3600`, "gracePeriodSeconds=1800", "gracePeriodSeconds=7200"
	for _, test := range []struct {
		name, spec string
		requests   []string // the query and, behind a space, the body of each
		want       int64
	}{
		{"the default", "", []string{""}, 30},
		{"its own", own, []string{""}, 3600},
		{"its own is none", `,"terminationGracePeriodSeconds":0`, []string{""}, isGone},
		{"its own is less than none", `,"terminationGracePeriodSeconds":-5`, []string{""}, 1},
		{"query", own, []string{shorter}, 1800},
		{"longer query", own, []string{longer}, 7200},
		{"none in the query", own, []string{"gracePeriodSeconds=0"}, isGone},
		{"less than none in the query", own, []string{"gracePeriodSeconds=-5"}, 1},
		{"body", own, []string{` {"gracePeriodSeconds":1800}`}, 1800},
		{"none in the body", own, []string{` {"gracePeriodSeconds":0}`}, isGone},
		{"less than none in the body", own, []string{` {"gracePeriodSeconds":-5}`}, 1},
		{"the least in the body", own, []string{` {"gracePeriodSeconds":-9223372036854775808}`}, 1},
		{"query beside a body", own, []string{"gracePeriodSeconds=0 {}"}, 3600},
		{"shortened", own, []string{"", shorter}, 1800},
		{"shortened twice", own, []string{longer, "", shorter}, 1800},
		{"not lengthened", own, []string{shorter, longer}, 1800},
		{"not lengthened by its own", own, []string{shorter, ""}, 1800},
		{"the same again", own, []string{shorter, shorter}, 1800},
		{"shortened to less than none", own, []string{"", "gracePeriodSeconds=-5"}, 1},
		{"a second is not shortened to less than none", own, []string{"gracePeriodSeconds=1", "gracePeriodSeconds=-5"}, 1},
		{"shortened to none", own, []string{"", "gracePeriodSeconds=0"}, isGone},
	} {
		c.send(201, "POST", pods, boundPod(test.spec))
		for _, request := range test.requests {
			query, body, _ := strings.Cut(request, " ")
			c.send(200, "DELETE", pods+"/p?"+query, body, jsonBody)
		}
		got := c.graceOf(pods + "/p")
		if got != test.want {
			t.Errorf("%s: %d s, want %d", test.name, got, test.want)
		}
		if got != isGone {
			c.send(200, "DELETE", pods+"/p?gracePeriodSeconds=0", "")
		}
	}
}

// TestNoGraceWithoutKubelet: no kubelet has anything left to do for a pod that has ended, or is on no node.
func TestNoGraceWithoutKubelet(t *testing.T) {
	c := newWritable(t)
	for _, query := range []string{"", "gracePeriodSeconds=1800", "gracePeriodSeconds=-1"} {
		c.send(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"i"}]}}`)
		c.send(200, "DELETE", pods+"/p?"+query, "")
		c.send(404, "GET", pods+"/p", "")
		for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
			c.send(201, "POST", pods, boundPod(""))
			c.send(200, "PATCH", pods+"/p/status", fmt.Sprintf(`{"status":{"phase":%q}}`, phase), merge)
			c.send(200, "DELETE", pods+"/p?"+query, "")
			c.send(404, "GET", pods+"/p", "")
		}
	}
	// One that ends while it is being deleted is removed by its kubelet.
	c.send(201, "POST", pods, boundPod(`,"terminationGracePeriodSeconds":3600`))
	c.send(200, "DELETE", pods+"/p", "")
	c.send(200, "PATCH", pods+"/p/status", `{"status":{"phase":"Succeeded"}}`, merge)
	c.send(200, "DELETE", pods+"/p", "")
	if got := c.graceOf(pods + "/p"); got != 3600 {
		t.Errorf("it has got %d s", got)
	}
	c.send(200, "DELETE", pods+"/p?gracePeriodSeconds=0", "")
	c.send(404, "GET", pods+"/p", "")
}

// TestGraceOfOtherRequests: a collection and an eviction give pods what the delete of one does.
func TestGraceOfOtherRequests(t *testing.T) {
	c := newWritable(t)
	for _, request := range [][3]string{
		{"DELETE", pods + "?gracePeriodSeconds=-5", ""},
		{"DELETE", pods, `{"gracePeriodSeconds":-5}`},
		{"POST", pods + "/p/eviction", `{"metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":-5}}`},
	} {
		c.send(201, "POST", pods, boundPod(""))
		if got := c.do(request[0], request[1], request[2], jsonBody); got.code != 200 && got.code != 201 {
			t.Errorf("%s: %d %s", request, got.code, got.body)
		}
		if got := c.graceOf(pods + "/p"); got != 1 {
			t.Errorf("%s: %d s", request, got)
		}
		c.send(200, "DELETE", pods+"/p?gracePeriodSeconds=0", "")
	}
}

// TestOnlyPodsHaveGrace: other objects go at once, or when their finalizers have gone, whatever is asked for.
func TestOnlyPodsHaveGrace(t *testing.T) {
	c := newWritable(t)
	for _, query := range []string{"", "gracePeriodSeconds=1800", "gracePeriodSeconds=0", "gracePeriodSeconds=-5"} {
		c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
		c.send(200, "DELETE", configMaps+"/a?"+query, "")
		c.send(404, "GET", configMaps+"/a", "")
		c.send(201, "POST", configMaps, `{"metadata":{"name":"a","finalizers":["a.b/c"]}}`)
		c.send(200, "DELETE", configMaps+"/a?"+query, "")
		if got := c.graceOf(configMaps + "/a"); got != 0 {
			t.Errorf("%s: a ConfigMap with a finalizer has got %d s", query, got)
		}
		c.send(200, "PATCH", configMaps+"/a", `{"metadata":{"finalizers":null}}`, merge)
		c.send(404, "GET", configMaps+"/a", "")
	}
}

// TestStoredGraceBelowZero: a pod that another server has given less than none has got a second.
func TestStoredGraceBelowZero(t *testing.T) {
	c := newWritable(t)
	for query, want := range map[string]int64{"": -5, "gracePeriodSeconds=-7": -5, "gracePeriodSeconds=1": -5, "gracePeriodSeconds=0": isGone} {
		pod := testPod("default", "p", nil, "n")
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(-5))
		c.put(pod)
		c.send(200, "DELETE", pods+"/p?"+query, "")
		var left corev1.Pod
		got := c.get(pods + "/p")
		if (got.code == 404) != (want == isGone) {
			t.Errorf("%s: %d %s", query, got.code, got.body)
		}
		if got.code != 404 {
			if got.into(t, &left); *left.DeletionGracePeriodSeconds != want {
				t.Errorf("%s: %d s", query, *left.DeletionGracePeriodSeconds)
			}
			c.send(200, "DELETE", pods+"/p?gracePeriodSeconds=0", "")
		}
	}
}
