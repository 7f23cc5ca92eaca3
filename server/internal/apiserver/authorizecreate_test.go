package apiserver

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestPutAndPatchThatCreateAreAuthorized for create too: to change an object is
// another right than to make one.
func TestPutAndPatchThatCreateAreAuthorized(t *testing.T) {
	var refuse atomic.Bool
	var asked atomic.Pointer[[]string]
	c := newWritable(t, func(s *setup) {
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) {
			seen := []string{a.Verb + " " + a.Namespace + "/" + a.Name}
			if before := asked.Load(); before != nil {
				seen = slices.Concat(*before, seen)
			}
			asked.Store(&seen)
			if a.Verb == "create" && refuse.Load() {
				return auth.NoOpinion, "not in this test"
			}
			return auth.Allow, ""
		})
	})
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}`
	const lease = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"},"spec":{"holderIdentity":"me"}}`
	type write struct {
		method, path, body, header string
		created, changed           int
	}
	for _, w := range []write{
		{"PATCH", configMaps + "/a?fieldManager=m", configMap, applyYAML, 201, 200},
		{"PATCH", configMaps + "/a?fieldManager=m&dryRun=All", configMap, applyYAML, 0, 200},
		{"PUT", leases + "/a", lease, jsonBody, 201, 422}, // a lease is not replaced without its version
	} {
		if w.created != 0 {
			refuse.Store(true)
			var status metav1.Status
			c.send(403, w.method, w.path, w.body, w.header).into(t, &status)
			if !strings.Contains(status.Message, "cannot create resource") || !strings.Contains(status.Message, "not in this test") {
				t.Errorf("%s %s is refused with %q", w.method, w.path, status.Message)
			}
			refuse.Store(false)
			asked.Store(nil)
			c.send(w.created, w.method, w.path, w.body, w.header)
			want := []string{strings.ToLower(strings.ReplaceAll(w.method, "PUT", "UPDATE")) + " default/a", "create default/a"}
			if got := *asked.Load(); !slices.Equal(got, want) {
				t.Errorf("%s %s asks for %q, want %q", w.method, w.path, got, want)
			}
		}
		refuse.Store(true)
		c.send(w.changed, w.method, w.path, w.body, w.header)
	}
	// What is wrong with the object comes first, as in Kubernetes.
	c.send(422, "PUT", leases+"/b", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"b"},"spec":{"leaseDurationSeconds":0}}`, jsonBody)
}
