package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

// forgotten is a cluster whose events from before the returned revisions are
// gone: of three pods, one has been deleted, one has changed its labels, and one
// has been made anew under its name.
func forgotten(t *testing.T) (*cluster, map[string]storage.Revision) {
	c := newCluster(t, func(s *setup) { s.cache.HistoryEvents = 2 })
	revs := seed(c)
	c.remove("a", "one")
	revs["relabelled"] = c.put(testPod("a", "two", map[string]string{"app": "z"}, "n2"))
	c.remove("b", "three")
	revs["again"] = c.put(testPod("b", "three", map[string]string{"app": "x"}, "n3"))
	for i := range 4 {
		revs["last"] = c.put(testPod("b", "four", map[string]string{"app": "w"}, fmt.Sprint("n", i)))
	}
	must(t, c.caches[c.pods].WaitReady(context.Background()))
	c.get("/api/v1/pods") // returns when the cache has come this far
	return c, revs
}

func TestWatchFromForgottenEventsTellsTheCoalescedHistory(t *testing.T) {
	c, revs := forgotten(t)
	third := revs["third"]
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"", []string{fmt.Sprint("DELETED one@", third+1), fmt.Sprint("MODIFIED two@", revs["relabelled"]), fmt.Sprint("DELETED three@", third+3),
			fmt.Sprint("ADDED three@", revs["again"]), fmt.Sprint("ADDED four@", revs["last"])}},
		{"&labelSelector=app%3Dx", []string{fmt.Sprint("DELETED two@", third), fmt.Sprint("DELETED one@", third+1), fmt.Sprint("DELETED three@", third+3),
			fmt.Sprint("ADDED three@", revs["again"])}},
		{"&labelSelector=app%3Dw", []string{fmt.Sprint("DELETED two@", third), fmt.Sprint("ADDED four@", revs["last"])}},
		{"&fieldSelector=spec.nodeName%3Dn2", []string{fmt.Sprint("MODIFIED two@", revs["relabelled"])}},
		{"&fieldSelector=metadata.name%3Done", []string{fmt.Sprint("DELETED one@", third+1)}},
	} {
		stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d%s", third, test.query))
		stream.want(test.want...)
	}
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", third))
	stream.want(fmt.Sprint("DELETED one@", third+1), fmt.Sprint("MODIFIED two@", revs["relabelled"]), fmt.Sprint("DELETED three@", third+3),
		fmt.Sprint("ADDED three@", revs["again"]), fmt.Sprint("ADDED four@", revs["last"]))
	live := c.put(testPod("b", "live", nil, ""))
	stream.want(fmt.Sprint("ADDED live@", live)) // and goes on
	if metrics := string(c.get("/metrics").body); !strings.Contains(metrics, `levelwire_cache_resumes_total{group="",history="coalesced",resource="pods"} 6`) {
		t.Error("six coalesced resumes are not counted")
	}
}

// TestTombstonesInEveryForm asks for what is left of deleted objects in the
// forms that are made from an object's JSON.
func TestTombstonesInEveryForm(t *testing.T) {
	c, revs := forgotten(t)
	path := fmt.Sprintf("/api/v1/pods?watch=1&fieldSelector=metadata.name%%3Done&resourceVersion=%d", revs["third"])
	for accept, check := range map[string]func(object []byte) bool{
		"application/json": func(object []byte) bool {
			var pod corev1.Pod
			return json.Unmarshal(object, &pod) == nil && pod.UID == "uid-one" && pod.Labels["app"] == "x" && pod.Spec.NodeName == "n1"
		},
		"application/json;as=Table;v=v1;g=meta.k8s.io": func(object []byte) bool {
			var table metav1.Table
			return json.Unmarshal(object, &table) == nil && len(table.Rows) == 1 && table.Rows[0].Cells[0] == "one"
		},
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io": func(object []byte) bool {
			var partial metav1.PartialObjectMetadata
			return json.Unmarshal(object, &partial) == nil && partial.UID == "uid-one" && partial.Kind == "PartialObjectMetadata"
		},
	} {
		e := c.watch(path, "Accept: "+accept).next()
		if e.Type != "DELETED" || !check(e.Object) {
			t.Errorf("%s: %s %s", accept, e.Type, e.Object)
		}
	}
}
