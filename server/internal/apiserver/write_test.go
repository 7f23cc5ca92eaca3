package apiserver

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/server/internal/apiserver/discovery"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// newWritable is a cluster with the admission and the objects that a real one
// has.
func newWritable(t testing.TB, change ...func(*setup)) *cluster {
	t.Helper()
	c := newCluster(t, change...)
	set := c.server.config.Registry
	services, err := service.New(set, service.Options{})
	must(t, err)
	set.Admit(namespace.Lifecycle(set), services.Admit)
	endpoint := bootstrap.NewEndpoint(set, services, netip.MustParseAddrPort("192.0.2.1:6443"), slog.Default())
	must(t, bootstrap.Run(t.Context(), set, services, endpoint))
	return c
}

const (
	jsonBody    = "Content-Type: application/json"
	yamlBody    = "Content-Type: application/yaml"
	protoBody   = "Content-Type: application/vnd.kubernetes.protobuf"
	protoAnswer = "Accept: application/vnd.kubernetes.protobuf"
	merge       = "Content-Type: application/merge-patch+json"
	strategic   = "Content-Type: application/strategic-merge-patch+json"
	operation   = "Content-Type: application/json-patch+json"

	configMaps  = "/api/v1/namespaces/default/configmaps"
	pods        = "/api/v1/namespaces/default/pods"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
)

// send is do for a request that must be answered with a code.
func (c *cluster) send(code int, method, path, body string, headers ...string) reply {
	c.t.Helper()
	r := c.do(method, path, body, headers...)
	if r.code != code {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, r.code, r.body, code)
	}
	return r
}

func (r reply) into(t testing.TB, obj any) {
	t.Helper()
	if err := json.Unmarshal(r.body, obj); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

func podBody(name string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name)
}

const deploymentBody = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,
 "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

func TestWritesInEveryEncoding(t *testing.T) {
	c := newWritable(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "protobuf"}, Data: map[string]string{"k": "v"}}
	message, err := resource.MarshalProtobuf(cm, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(t, err)
	bodies := map[string][2]string{
		"json":     {`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"json"},"data":{"k":"v"}}`, jsonBody},
		"yaml":     {"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: yaml\ndata:\n  k: v\n", yamlBody},
		"protobuf": {string(message), protoBody},
	}
	for name, body := range bodies {
		var got corev1.ConfigMap
		c.send(201, "POST", configMaps, body[0], body[1]).into(t, &got)
		if got.Name != name || got.UID == "" || got.Data["k"] != "v" || got.Kind != "ConfigMap" {
			t.Errorf("created %+v", got)
		}
		var again corev1.ConfigMap
		c.send(200, "GET", configMaps+"/"+name, "").into(t, &again)
		if again.ResourceVersion != got.ResourceVersion {
			t.Errorf("read version %s after writing %s", again.ResourceVersion, got.ResourceVersion)
		}
	}
	r := c.send(200, "PUT", configMaps+"/protobuf", string(message), protoBody, protoAnswer)
	var back corev1.ConfigMap
	if gvk, _, err := resource.DecodeInto(resource.MediaTypeProtobuf, r.body, corev1.SchemeGroupVersion.WithKind("ConfigMap"), &back); err != nil || back.UID == "" {
		t.Errorf("protobuf answer: %v %v %+v", gvk, err, back)
	}
}

func TestBadWritesAreRefused(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	c.send(201, "POST", pods, podBody("a"))
	huge := `{"metadata":{"name":"h"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	tests := []struct {
		method, path, body string
		headers            []string
		code               int
		reason             metav1.StatusReason
	}{
		{"POST", configMaps, `{`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, ``, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `null`, nil, 422, metav1.StatusReasonInvalid},
		{"POST", configMaps, `[]`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"metadata":{"name":7}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, "a: [", []string{yamlBody}, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, "k8s\x00\xff\xff", []string{protoBody}, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, "rubbish", []string{protoBody}, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{}`, []string{"Content-Type: text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType},
		{"POST", configMaps, `{}`, []string{"Content-Type: ;;"}, 415, metav1.StatusReasonUnsupportedMediaType},
		{"POST", configMaps, huge, nil, 413, metav1.StatusReasonRequestEntityTooLarge},
		{"POST", configMaps, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"b"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"b"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{"name":"b"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"metadata":{"name":"b","namespace":"other"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"metadata":{"name":"B_"}}`, nil, 422, metav1.StatusReasonInvalid},
		{"POST", configMaps, `{"metadata":{"name":"a"}}`, nil, 409, metav1.StatusReasonAlreadyExists},
		{"POST", configMaps + "?dryRun=Some", `{"metadata":{"name":"b"}}`, nil, 422, metav1.StatusReasonInvalid},
		{"POST", configMaps + "?fieldValidation=Maybe", `{"metadata":{"name":"b"}}`, nil, 422, metav1.StatusReasonInvalid},
		{"POST", configMaps + "?fieldValidation=Strict", `{"metadata":{"name":"b"},"dota":{}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", configMaps, `{"metadata":{"name":"b"}}`, []string{"Accept: text/html"}, 406, metav1.StatusReasonNotAcceptable},
		{"POST", "/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"b"}}`, nil, 404, metav1.StatusReasonNotFound},
		{"POST", "/api/v1/configmaps", `{"metadata":{"name":"b"}}`, nil, 405, metav1.StatusReasonMethodNotAllowed},
		{"POST", configMaps + "/a", `{"metadata":{"name":"a"}}`, nil, 405, metav1.StatusReasonMethodNotAllowed},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"b"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"PUT", configMaps + "/a", `{}`, nil, 400, metav1.StatusReasonBadRequest},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a","namespace":"x"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"PUT", configMaps + "/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`, nil, 409, metav1.StatusReasonConflict},
		{"PUT", configMaps + "/none", `{"metadata":{"name":"none"}}`, nil, 404, metav1.StatusReasonNotFound},
		{"PUT", configMaps + "/a/status", `{"metadata":{"name":"a"}}`, nil, 404, metav1.StatusReasonNotFound},
		{"PATCH", configMaps + "/a", `{}`, []string{jsonBody}, 415, metav1.StatusReasonUnsupportedMediaType},
		{"PATCH", configMaps + "/a", `{"dota":1}`, []string{merge, "Accept: application/*"}, 406, metav1.StatusReasonNotAcceptable},
		{"PATCH", configMaps + "/a?fieldValidation=Strict", `{"dota":1}`, []string{merge}, 422, metav1.StatusReasonInvalid},
		{"PATCH", configMaps + "/a?force=true", `{}`, []string{merge}, 422, metav1.StatusReasonInvalid},
		{"PATCH", configMaps + "/a", `[{"op":"test","path":"/data","value":1}]`, []string{operation}, 422, metav1.StatusReasonInvalid},
		{"DELETE", configMaps + "/none", "", nil, 404, metav1.StatusReasonNotFound},
		{"DELETE", configMaps + "/a", `{`, []string{jsonBody}, 400, metav1.StatusReasonBadRequest},
		{"DELETE", configMaps + "/a", `{}`, []string{"Content-Type: text/plain"}, 415, metav1.StatusReasonUnsupportedMediaType},
		{"DELETE", configMaps + "/a", `{"kind":"Pod","apiVersion":"v1"}`, nil, 400, metav1.StatusReasonBadRequest},
		{"DELETE", configMaps + "/a?gracePeriodSeconds=soon", "", nil, 400, metav1.StatusReasonBadRequest},
		{"DELETE", configMaps + "/a?propagationPolicy=Up", "", nil, 422, metav1.StatusReasonInvalid},
		{"DELETE", configMaps + "/a?dryRun=No", "", nil, 422, metav1.StatusReasonInvalid},
		{"DELETE", configMaps + "?labelSelector=a=(", "", nil, 400, metav1.StatusReasonBadRequest},
		{"DELETE", "/api/v1/namespaces/kube-system", "", nil, 403, metav1.StatusReasonForbidden},
		{"POST", pods + "/a/binding", `{"metadata":{"name":"a"},"target":{"kind":"Node"}}`, nil, 422, metav1.StatusReasonInvalid},
		{"POST", pods + "/a/binding", `{"metadata":{"name":"b"},"target":{"kind":"Node","name":"n"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", pods + "/a/binding", `{"target":{"kind":"Node","name":"n"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", pods + "/a/eviction", `{"metadata":{"name":"b"}}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", pods + "/a/eviction", `{}`, nil, 400, metav1.StatusReasonBadRequest},
		{"POST", pods + "/a/nonsense", `{}`, nil, 404, metav1.StatusReasonNotFound},
		{"POST", pods + "/a/status", `{}`, nil, 405, metav1.StatusReasonMethodNotAllowed},
		{"GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", ``, nil, 405, metav1.StatusReasonMethodNotAllowed},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{}}`, nil, 422, metav1.StatusReasonInvalid},
	}
	before, err := c.store.Current(t.Context())
	must(t, err)
	for _, test := range tests {
		r := c.do(test.method, test.path, test.body, test.headers...)
		what := fmt.Sprintf("%s %s %.60s", test.method, test.path, test.body)
		if r.code != test.code {
			t.Errorf("%s: %d %s, want %d", what, r.code, r.body, test.code)
			continue
		}
		if s := r.status(t); s.Reason != test.reason || s.Code != int32(test.code) || s.Message == "" {
			t.Errorf("%s: status %+v, want %s", what, s, test.reason)
		}
	}
	if after, err := c.store.Current(t.Context()); err != nil || after != before {
		t.Errorf("refused writes moved the store from %d to %d (%v)", before, after, err)
	}
}

// TestKindsThatUpdatesCreate are those of Kubernetes.
func TestKindsThatUpdatesCreate(t *testing.T) {
	c := newWritable(t)
	const core, rbac = "/api/v1/namespaces/default/", "/apis/rbac.authorization.k8s.io/v1/"
	for path, rest := range map[string]string{
		core + "services": `,"spec":{"ports":[{"port":80}]}`, core + "endpoints": "", core + "limitranges": "",
		core + "events": `,"involvedObject":{"namespace":"default"}`,
		"/apis/coordination.k8s.io/v1/namespaces/default/leases": "", "/apis/node.k8s.io/v1/runtimeclasses": `,"handler":"h"`,
		rbac + "clusterroles": "", rbac + "namespaces/default/roles": "",
		rbac + "clusterrolebindings":             `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}`,
		rbac + "namespaces/default/rolebindings": `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}`,
	} {
		c.send(201, "PUT", path+"/new", `{"metadata":{"name":"new","resourceVersion":"3"}`+rest+`}`)
	}
	c.send(404, "PUT", configMaps+"/new", `{"metadata":{"name":"new"}}`)
}

func TestUnknownFieldsWarnUnlessTold(t *testing.T) {
	c := newWritable(t)
	body := `{"metadata":{"name":"a%d","labels":{"x":"1","x":"2"}},"dota":{}}`
	for i, test := range []struct {
		query string
		want  int
	}{{"", 2}, {"?fieldValidation=Warn", 2}, {"?fieldValidation=Ignore", 0}} {
		r := c.send(201, "POST", configMaps+test.query, fmt.Sprintf(body, i))
		if got := r.header.Values("Warning"); len(got) != test.want || test.want > 0 && !strings.HasPrefix(got[0], "299 - ") {
			t.Errorf("%q: warnings %q, want %d", test.query, got, test.want)
		}
	}
	r := c.send(200, "PATCH", configMaps+"/a0", `{"dota":{}}`, merge)
	if got := r.header.Values("Warning"); len(got) != 1 || !strings.Contains(got[0], "dota") {
		t.Errorf("patch: warnings %q", got)
	}
}

func TestScaleOverHTTP(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", deployments, deploymentBody)
	var scale autoscalingv1.Scale
	c.send(200, "GET", deployments+"/web/scale", "").into(t, &scale)
	if scale.Spec.Replicas != 2 || scale.Status.Selector != "app=web" || scale.Kind != "Scale" || scale.APIVersion != "autoscaling/v1" {
		t.Errorf("scale is %+v", scale)
	}
	scale.Spec.Replicas = 4
	message, err := resource.MarshalProtobuf(&scale, discovery.ScaleKind)
	must(t, err)
	r := c.send(200, "PUT", deployments+"/web/scale", string(message), protoBody, protoAnswer)
	if _, _, err := resource.DecodeInto(resource.MediaTypeProtobuf, r.body, discovery.ScaleKind, &scale); err != nil || scale.Spec.Replicas != 4 {
		t.Errorf("protobuf scale: %v %+v", err, scale)
	}
	c.send(200, "PATCH", deployments+"/web/scale", `{"spec":{"replicas":1}}`, merge)
	var d appsv1.Deployment
	c.send(200, "GET", deployments+"/web", "").into(t, &d)
	if *d.Spec.Replicas != 1 || d.Generation != 3 {
		t.Errorf("%d replicas, generation %d", *d.Spec.Replicas, d.Generation)
	}
	c.send(404, "GET", pods+"/web/scale", "")
}

func TestBindingOverHTTP(t *testing.T) {
	c := newWritable(t)
	for i, path := range []string{pods + "/p0/binding", "/api/v1/namespaces/default/bindings"} {
		name := fmt.Sprintf("p%d", i)
		c.send(201, "POST", pods, podBody(name))
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
		message, err := resource.MarshalProtobuf(binding, discovery.BindingKind)
		must(t, err)
		if s := c.send(201, "POST", path, string(message), protoBody).status(t); s.Status != metav1.StatusSuccess {
			t.Errorf("%s: %+v", path, s)
		}
		var pod corev1.Pod
		c.send(200, "GET", pods+"/"+name, "").into(t, &pod)
		if pod.Spec.NodeName != "n" || len(pod.Status.Conditions) != 1 {
			t.Errorf("bound pod: %q %+v", pod.Spec.NodeName, pod.Status.Conditions)
		}
		c.send(409, "POST", path, string(message), protoBody)
	}
}

// TestDeletionIsWatched reads what a watcher of a pod sees, and the answer that
// the deleting client gets.
func TestDeletionIsWatched(t *testing.T) {
	c := newWritable(t)
	var created corev1.Pod
	c.send(201, "POST", pods, podBody("p")).into(t, &created)
	watch := c.watch(pods + "?watch=1&resourceVersion=" + created.ResourceVersion)
	var deleted corev1.Pod
	c.send(200, "DELETE", pods+"/p", "").into(t, &deleted)
	if deleted.Kind != "Pod" || deleted.DeletionTimestamp == nil {
		t.Errorf("the answer is %+v", deleted)
	}
	for _, want := range []string{"MODIFIED", "DELETED"} {
		event := watch.next()
		var pod corev1.Pod
		must(t, json.Unmarshal(event.Object, &pod))
		order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, created.ResourceVersion)
		if must(t, err); event.Type != want || pod.DeletionTimestamp == nil || order <= 0 {
			t.Errorf("event %s of version %s, deleted at %v; want %s", event.Type, pod.ResourceVersion, pod.DeletionTimestamp, want)
		}
		created.ResourceVersion = pod.ResourceVersion
	}
	c.send(404, "GET", pods+"/p", "")
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	status := c.send(200, "DELETE", configMaps+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`, jsonBody).status(t)
	if status.Status != metav1.StatusSuccess || status.Details.Name != "a" || status.Details.Kind != "configmaps" || status.Details.UID == "" {
		t.Errorf("status %+v", status)
	}
}

func TestDeleteOptionsInProtobuf(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	opts := &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}
	message, err := resource.MarshalProtobuf(opts, schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"})
	must(t, err)
	var kept corev1.ConfigMap
	c.send(200, "DELETE", configMaps+"/a", string(message), protoBody).into(t, &kept)
	if fmt.Sprint(kept.Finalizers) != "[orphan]" {
		t.Errorf("finalizers %v", kept.Finalizers)
	}
}

func TestDeleteCollection(t *testing.T) {
	c := newWritable(t)
	for i := range 30 {
		c.send(201, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"c%02d","labels":{"even":"%v"}}}`, i, i%2 == 0))
	}
	var list corev1.ConfigMapList
	c.send(200, "DELETE", configMaps+"?labelSelector=even%3Dtrue", "").into(t, &list)
	if len(list.Items) != 15 || list.Kind != "ConfigMapList" || list.Items[0].Name != "c00" {
		t.Errorf("%s of %d", list.Kind, len(list.Items))
	}
	c.send(200, "GET", configMaps, "").into(t, &list)
	if len(list.Items) != 15 {
		t.Errorf("%d are left", len(list.Items))
	}
	c.send(200, "DELETE", configMaps+"?dryRun=All", "")
	c.send(200, "GET", configMaps+"/c01", "")
}

// TestDeletionOfAPageKeepsWhatCameLater: a page at a version is deleted as it was listed,
// and not what was made under its names since.
func TestDeletionOfAPageKeepsWhatCameLater(t *testing.T) {
	c := newWritable(t)
	for _, name := range []string{"a", "b", "d"} {
		c.send(201, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	var list corev1.ConfigMapList
	c.send(200, "GET", configMaps+"?limit=2", "").into(t, &list)
	c.send(200, "DELETE", configMaps+"/b", "")
	c.send(201, "POST", configMaps, `{"metadata":{"name":"b"}}`)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a2"}}`)
	page := configMaps + "?limit=2&resourceVersionMatch=Exact&resourceVersion=" + list.ResourceVersion
	c.send(409, "DELETE", page, "") // without a body the version is a precondition of each object, too
	c.send(200, "DELETE", page, `{}`)
	left := ""
	c.send(200, "GET", configMaps, "").into(t, &list)
	for _, o := range list.Items {
		left += o.Name + " "
	}
	if left != "a2 b d " {
		t.Errorf("%q are left", left)
	}
}

// TestDeleteCollectionByPage: with a limit one page is deleted, and not everything; the
// continue token in the answer is the next page's, at the same version.
func TestDeleteCollectionByPage(t *testing.T) {
	c := newWritable(t)
	for i := range 10 {
		c.send(201, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"c%02d","labels":{"even":"%v"}}}`, i, i%2 == 0))
	}
	left := func() (names string) {
		var list corev1.ConfigMapList
		c.send(200, "GET", configMaps, "").into(t, &list)
		for _, o := range list.Items {
			names += o.Name + " "
		}
		return names
	}
	var deleted corev1.ConfigMapList
	c.send(200, "DELETE", configMaps+"?labelSelector=even%3Dtrue&limit=2", "").into(t, &deleted)
	if len(deleted.Items) != 2 || deleted.Continue == "" || left() != "c01 c03 c04 c05 c06 c07 c08 c09 " {
		t.Fatalf("%d were deleted, %q are left", len(deleted.Items), left())
	}
	c.send(201, "POST", configMaps, `{"metadata":{"name":"c05a","labels":{"even":"true"}}}`)
	next := "&continue=" + url.QueryEscape(deleted.Continue)
	deleted = corev1.ConfigMapList{}
	c.send(200, "DELETE", configMaps+"?labelSelector=even%3Dtrue&limit=9"+next, "").into(t, &deleted)
	if len(deleted.Items) != 3 || deleted.Continue != "" || left() != "c01 c03 c05 c05a c07 c09 " {
		t.Errorf("%d were deleted, %q are left", len(deleted.Items), left())
	}
	c.send(400, "DELETE", configMaps+"?limit=1&continue=none", "")
	c.send(400, "DELETE", configMaps+"?continue=none", "")
}

func TestReviews(t *testing.T) {
	c := newWritable(t)
	can := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
	}}
	message, err := resource.MarshalProtobuf(can, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	must(t, err)
	c.send(201, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", string(message), protoBody).into(t, can)
	if !can.Status.Allowed {
		t.Errorf("not allowed: %+v", can.Status)
	}
	tests := []struct{ path, body, want string }{
		{"/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, `"username":"tester"`},
		{"/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"` + testToken + `"}}`, `"authenticated":true`},
		{"/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"another"}}`, `"error":`},
		{"/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}`, `"allowed":true`},
		{"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
			`{"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}}}`, `"allowed":true`},
		{"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, `"resourceRules":[{"verbs":["*"]`},
	}
	for _, test := range tests {
		if r := c.send(201, "POST", test.path, test.body); !strings.Contains(string(r.body), test.want) {
			t.Errorf("%s: %s, want %s", test.path, r.body, test.want)
		}
	}
	for _, gv := range []string{"/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"} {
		if r := c.send(200, "GET", gv, ""); !strings.Contains(string(r.body), "reviews") {
			t.Errorf("discovery of %s: %s", gv, r.body)
		}
	}
}

// FuzzBody posts anything as anything. The answer may be any but a 500, and if
// it is a refusal nothing was written.
func FuzzBody(f *testing.F) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Data: map[string]string{"k": "v"}}
	message, err := resource.MarshalProtobuf(runtime.Object(cm), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(f, err)
	f.Add(uint8(0), []byte(`{"metadata":{"name":"a","labels":{"x":null}}}`))
	f.Add(uint8(1), []byte("metadata: {name: a, annotations: {x: 1}}"))
	f.Add(uint8(2), message)
	f.Add(uint8(3), []byte(`{"metadata":{"finalizers":["orphan","foregroundDeletion"]}}`))
	f.Add(uint8(4), []byte(`[{"op":"add","path":"/metadata/ownerReferences","value":[{}]}]`))
	f.Add(uint8(5), []byte(`{"$patch":"replace","spec":{"containers":[{"$patch":"delete","name":"c"}]}}`))
	f.Add(uint8(6), []byte(`{"preconditions":{"uid":"x"}}`))
	f.Add(uint8(7), []byte(`{"metadata":{"name":"target"},"target":{"name":"n"}}`))
	c := newWritable(f)
	c.send(201, "POST", pods, podBody("target"))
	targets := []struct{ method, path, kind string }{
		{"POST", pods, jsonBody}, {"POST", pods, yamlBody}, {"POST", configMaps, protoBody}, {"PATCH", pods + "/target", merge},
		{"PATCH", pods + "/target", operation}, {"PATCH", pods + "/target", strategic}, {"DELETE", configMaps + "/none", jsonBody},
		{"POST", pods + "/none/binding", jsonBody}, {"PUT", pods + "/target", jsonBody}, {"PUT", pods + "/target/status", yamlBody},
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		c := *c
		c.t = t
		target := targets[int(which)%len(targets)]
		before, err := c.store.Current(t.Context())
		must(t, err)
		r := c.do(target.method, target.path, string(body), target.kind)
		if r.code >= http.StatusInternalServerError {
			t.Errorf("%s %s: %d %s", target.method, target.path, r.code, r.body)
		}
		if after, err := c.store.Current(t.Context()); r.code >= 400 && after != before {
			t.Errorf("%s %s: refused with %d, and wrote (%v)", target.method, target.path, r.code, err)
		}
	})
}

func TestNamespaceIsDeletedInTwoSteps(t *testing.T) {
	c := newWritable(t)
	const path = "/api/v1/namespaces/work"
	var ns corev1.Namespace
	c.send(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"work"}}`).into(t, &ns)
	if fmt.Sprint(ns.Spec.Finalizers) != "[kubernetes]" || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("a new namespace is %+v %+v", ns.Spec, ns.Status)
	}
	c.send(200, "DELETE", path, "").into(t, &ns)
	if ns.Status.Phase != corev1.NamespaceTerminating || ns.DeletionTimestamp == nil {
		t.Errorf("a namespace that is being deleted is %+v", ns.Status)
	}
	s := c.send(403, "POST", path+"/configmaps", `{"metadata":{"name":"a"}}`).status(t)
	if len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != corev1.NamespaceTerminatingCause {
		t.Errorf("causes %+v", s.Details)
	}
	ns.Spec.Finalizers = nil
	body, err := json.Marshal(ns)
	must(t, err)
	c.send(200, "PUT", path+"/finalize", string(body))
	c.send(404, "GET", path, "")
}

func TestServicesOverHTTP(t *testing.T) {
	c := newWritable(t)
	const path = "/api/v1/namespaces/default/services"
	var svc corev1.Service
	c.send(200, "GET", path+"/kubernetes", "").into(t, &svc)
	if svc.Spec.ClusterIP != "10.96.0.1" {
		t.Errorf("default/kubernetes has %s", svc.Spec.ClusterIP)
	}
	body := `{"metadata":{"name":"web"},"spec":{"type":"NodePort","selector":{"app":"web"},"ports":[{"port":80}]}}`
	c.send(201, "POST", path, body).into(t, &svc)
	if !strings.HasPrefix(svc.Spec.ClusterIP, "10.96.") || svc.Spec.Ports[0].NodePort < 30000 || svc.Spec.Ports[0].NodePort > 32767 {
		t.Errorf("a new service has %+v", svc.Spec)
	}
	var replaced corev1.Service
	c.send(200, "PUT", path+"/web", body).into(t, &replaced)
	if replaced.Spec.ClusterIP != svc.Spec.ClusterIP || replaced.Spec.Ports[0].NodePort != svc.Spec.Ports[0].NodePort {
		t.Errorf("a PUT moved the service to %+v", replaced.Spec)
	}
	for _, patch := range []string{
		`{"spec":{"clusterIP":"10.96.7.7","clusterIPs":["10.96.7.7"]}}`, `{"spec":{"clusterIP":"10.96.7.7","clusterIPs":null}}`,
		`{"spec":{"clusterIP":"11.0.0.5","clusterIPs":["11.0.0.5"]}}`, // not in the range, which is not what is wrong with it
	} {
		var refused metav1.Status
		c.send(422, "PATCH", path+"/web", patch, merge).into(t, &refused)
		if causes := refused.Details.Causes; len(causes) != 1 || causes[0].Field != "spec.clusterIPs[0]" || !strings.HasSuffix(causes[0].Message, "may not change once set") {
			t.Errorf("%s is refused with %v", patch, causes)
		}
	}
	c.send(404, "GET", "/apis/networking.k8s.io/v1/ipaddresses/10.96.7.7", "")
	c.send(200, "DELETE", path+"/web", "")
	c.send(404, "GET", "/apis/networking.k8s.io/v1/ipaddresses/"+svc.Spec.ClusterIP, "")
}

// TestStatusPatchesDefaultLabels: labels that a write of the status takes away are defaulted
// from the spec's, whichever verb it is.
func TestStatusPatchesDefaultLabels(t *testing.T) {
	c := newWritable(t)
	const (
		jobs = "/apis/batch/v1/namespaces/default/jobs"
		spec = `"spec":{"manualSelector":true,"selector":{"matchLabels":{"app":"job"}},
			"template":{"metadata":{"labels":{"app":"job"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}`
	)
	for name, write := range map[string]func() reply{
		"put": func() reply {
			return c.send(200, "PUT", jobs+"/put/status", `{"metadata":{"name":"put"},`+spec+`,"status":{"active":1}}`)
		},
		"patched": func() reply {
			return c.send(200, "PATCH", jobs+"/patched/status", `{"metadata":{"labels":null},"status":{"active":1}}`, merge)
		},
	} {
		c.send(201, "POST", jobs, `{"metadata":{"name":"`+name+`","labels":{"own":"x"}},`+spec+`}`)
		var job batchv1.Job
		write().into(t, &job)
		if want := map[string]string{"app": "job"}; !maps.Equal(job.Labels, want) || job.Status.Active != 1 {
			t.Errorf("%s: %v, and %d active", name, job.Labels, job.Status.Active)
		}
	}
}
