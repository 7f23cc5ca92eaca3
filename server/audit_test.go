package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: [/readyz]
- level: Metadata
  resources: [{group: "", resources: [secrets, serviceaccounts/token]}]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
- level: Request
  resources: [{group: "", resources: [namespaces]}]
  omitStages: [RequestReceived]
- level: Metadata
  nonResourceURLs: [/version]
- level: None
`

// audited starts a server with the policy and a log, and returns the log's path.
func audited(t *testing.T, policy string) (*running, string) {
	t.Helper()
	dir := t.TempDir()
	policyFile, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, Audit: server.AuditConfig{PolicyFile: policyFile, LogPath: path},
	}), path
}

// auditLog reads the events of a log whose URI contains a text. The server has stopped.
func auditLog(t *testing.T, path, uri string) (events []auditv1.Event) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if strings.Contains(e.RequestURI, uri) {
			events = append(events, e)
		}
	}
	return events
}

// stages renders events for comparison.
func stages(events []auditv1.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Verb+" "+string(e.Level)+" "+string(e.Stage))
	}
	return strings.Join(all, ", ")
}

// raw makes a request with the administrator's certificate.
func (r *running) raw(ctx context.Context, t *testing.T, method, path, body string, header http.Header) *http.Response {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	request, err := http.NewRequestWithContext(ctx, method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	c.CloseIdleConnections()
	return response
}

// TestAuditLevels: what the policy says is in the log, and no more.
func TestAuditLevels(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, auditPolicy)
	c := s.client(t)
	secret := createSecret(ctx, t, c, "hidden")
	if _, err := secrets(c).Get(ctx, secret.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	object := create(ctx, t, c, "logged")
	object.Data = map[string]string{"changed": "yes"}
	if _, err := configMaps(c).Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps(c).List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps(c).Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "logged"}}
	if _, err := client.For[*corev1.Namespace](c).Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.raw(ctx, t, http.MethodGet, "/version", "", nil)
	s.raw(ctx, t, http.MethodGet, "/readyz", "", nil)
	c.CloseIdleConnections()
	s.stop(t)

	if content, _ := os.ReadFile(path); bytes.Contains(content, []byte(marker)) || bytes.Contains(content, []byte("/readyz")) || bytes.Contains(content, []byte("managedFields")) {
		t.Errorf("the log has what it must not have:\n%s", content)
	}
	events := auditLog(t, path, "/secrets")
	if got := stages(events); got != "create Metadata RequestReceived, create Metadata ResponseComplete, get Metadata RequestReceived, get Metadata ResponseComplete" {
		t.Errorf("secrets: %s", got)
	}
	done := events[1]
	if ref := done.ObjectRef; ref == nil || ref.Name != "hidden" || ref.Namespace != "default" || ref.Resource != "secrets" || done.User.Username != "levelwire-admin" ||
		done.ResponseStatus.Code != 201 || done.Annotations["authorization.k8s.io/decision"] != "allow" || len(done.SourceIPs) != 1 || done.RequestObject != nil || done.UserAgent == "" ||
		done.AuditID != events[0].AuditID || done.StageTimestamp.Before(&done.RequestReceivedTimestamp) {
		t.Errorf("create of a secret: %+v", done)
	}
	events = auditLog(t, path, "/configmaps")
	if got := stages(events); got != "create RequestResponse RequestReceived, create RequestResponse ResponseComplete, update RequestResponse RequestReceived, update RequestResponse ResponseComplete, "+
		"list RequestResponse RequestReceived, list RequestResponse ResponseComplete, get RequestResponse RequestReceived, get RequestResponse ResponseComplete" {
		t.Errorf("configmaps: %s", got)
	}
	for i, want := range map[int][2]string{1: {`"name":"logged"`, `"uid":`}, 3: {`"changed":"yes"`, `"changed":"yes"`}, 5: {"", `"items":[`}, 7: {"", `"reason":"NotFound"`}} {
		request, response := "", ""
		if events[i].RequestObject != nil {
			request = string(events[i].RequestObject.Raw)
		}
		if events[i].ResponseObject != nil {
			response = string(events[i].ResponseObject.Raw)
		}
		if (want[0] == "") != (request == "") || !strings.Contains(request, want[0]) || !strings.Contains(response, want[1]) {
			t.Errorf("configmaps, event %d: %s, answered %s", i, request, response)
		}
	}
	if failed := events[7].ResponseStatus; failed.Code != 404 || failed.Reason != metav1.StatusReasonNotFound || failed.Message == "" {
		t.Errorf("a get of what is absent: %+v", failed)
	}
	events = auditLog(t, path, "/namespaces?")
	if got := stages(auditLog(t, path, "/api/v1/namespaces")); !strings.Contains(got, "create Request ResponseComplete") || strings.Contains(got, "Request RequestReceived") {
		t.Errorf("namespaces: %s %v", got, events)
	}
	if got := stages(auditLog(t, path, "/version")); got != "get Metadata RequestReceived, get Metadata ResponseComplete" {
		t.Errorf("/version: %s", got)
	}
}

// TestAuditOfProtobuf: the events of a create in protobuf name its object and have it, also of
// the kinds that client-go does not know.
func TestAuditOfProtobuf(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, verbs: [create]}]\n")
	const name = "v1.metrics.example.com"
	object := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "metrics.example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 1,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "metrics"}, InsecureSkipTLSVerify: true,
		},
	}
	object.SetGroupVersionKind(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"))
	var body bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	const uri = "/apis/apiregistration.k8s.io/v1/apiservices?fieldManager=test"
	if response := s.raw(ctx, t, http.MethodPost, uri, body.String(), http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}); response.StatusCode != http.StatusCreated {
		t.Fatal(response.Status)
	}
	s.stop(t)
	events := auditLog(t, path, uri)
	if got := stages(events); got != "create Request RequestReceived, create Request ResponseComplete" {
		t.Fatal(got)
	}
	if e := events[1]; e.ObjectRef.Name != name || e.RequestObject == nil || !bytes.Contains(e.RequestObject.Raw, []byte(name)) {
		t.Errorf("%+v", e)
	}
}

// TestAuditOfWatchesAndUsers: a watch has the stage ResponseStarted; who impersonates
// and who fails to authenticate is in the log; a client may choose the Audit-ID.
func TestAuditOfWatchesAndUsers(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
	c := s.client(t)
	watch, err := configMaps(c).Watch(ctx, metav1.ListOptions{LabelSelector: "watch=this"})
	if err != nil {
		t.Fatal(err)
	}
	watch.Close()
	header := http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"readers"}, "Audit-Id": {"chosen-by-a-test"}}
	if response := s.raw(ctx, t, http.MethodGet, "/api/v1/pods?by=jane", "", header); response.Header.Get("Audit-Id") != "chosen-by-a-test" {
		t.Errorf("the answer has the Audit-ID %q", response.Header.Get("Audit-Id"))
	}
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/api/v1/pods?by=stranger", nil)
	request.Header.Set("Authorization", "Bearer SECRET-TOKEN")
	response, err := anonymous.Do(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Fatal(response, err)
	}
	_ = response.Body.Close()
	anonymous.CloseIdleConnections()
	c.CloseIdleConnections()
	s.stop(t)

	events := auditLog(t, path, "watch%3Dthis")
	if got := stages(events); got != "watch Metadata RequestReceived, watch Metadata ResponseStarted, watch Metadata ResponseComplete" || events[1].ResponseStatus.Code != 200 {
		t.Errorf("a watch: %s", got)
	}
	jane := auditLog(t, path, "by=jane")
	if len(jane) != 2 || jane[1].User.Username != "levelwire-admin" || jane[1].ImpersonatedUser == nil || jane[1].ImpersonatedUser.Username != "jane" || jane[1].AuditID != "chosen-by-a-test" {
		t.Errorf("impersonation: %+v", jane)
	}
	stranger := auditLog(t, path, "by=stranger")
	if len(stranger) != 1 || stranger[0].Stage != "ResponseStarted" || stranger[0].ResponseStatus.Code != 401 || stranger[0].User.Username != "" ||
		stranger[0].ResponseStatus.Message != "Authentication failed, attempted: bearer" {
		t.Errorf("a wrong token: %+v", stranger)
	}
	if content, _ := os.ReadFile(path); bytes.Contains(content, []byte("SECRET-TOKEN")) {
		t.Error("a token is in the log")
	}
}

// TestPartsOfASlowRequest: its event says where the time has gone. A webhook that does not
// answer makes it slow, for the second that it is waited for.
func TestPartsOfASlowRequest(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n")
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hook.Close)
	c := s.client(t)
	validateBy(ctx, t, c, hook, func(w *admissionregistrationv1.ValidatingWebhook) {
		ignore := admissionregistrationv1.Ignore
		w.TimeoutSeconds, w.FailurePolicy = new(int32(1)), &ignore
	})
	create(ctx, t, c, "slow")
	c.CloseIdleConnections()
	s.stop(t)
	events := auditLog(t, path, "/configmaps")
	if len(events) != 1 {
		t.Fatalf("%+v", events)
	}
	for _, part := range []string{"total", "authentication", "authorization", "apf-queue-wait", "validating-webhook", "etcd", "serialize-response-object", "response-write"} {
		took, err := time.ParseDuration(events[0].Annotations["apiserver.latency.k8s.io/"+part])
		if err != nil || took <= 0 || part == "validating-webhook" && took < time.Second {
			t.Errorf("%s: %v, %v of %v", part, took, err, events[0].Annotations)
		}
	}
	for _, part := range []string{"mutating-webhook", "impersonation"} {
		if took, ok := events[0].Annotations["apiserver.latency.k8s.io/"+part]; ok {
			t.Errorf("%s, which there was not: %s", part, took)
		}
	}
}

// TestDeprecatedVersions: the audit log and a metric say who asks for what.
func TestDeprecatedVersions(t *testing.T) {
	ctx := deadline(t)
	s, path := audited(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
	const of = `apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1`
	if strings.Contains(s.get(t, "/metrics"), of) {
		t.Error("endpoints were asked for before the first request for them")
	}
	s.raw(ctx, t, http.MethodGet, "/api/v1/endpoints?by=test", "", nil)
	s.raw(ctx, t, http.MethodGet, "/api/v1/pods?by=test", "", nil)
	if !strings.Contains(s.get(t, "/metrics"), of) {
		t.Errorf("no %s", of)
	}
	s.stop(t)
	for uri, want := range map[string]string{"endpoints?by=test": "true", "pods?by=test": ""} {
		events := auditLog(t, path, uri)
		if len(events) != 2 || events[1].Annotations["k8s.io/deprecated"] != want {
			t.Errorf("%s: %+v", uri, events)
		}
	}
}

// TestStrictAudit: in the mode blocking-strict, a request fails before anything comes of it
// if its first event cannot be stored.
func TestStrictAudit(t *testing.T) {
	var down atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(hook.Close)
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Audit: server.AuditConfig{
		PolicyFile:        mustWrite(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, resources: [{resources: [configmaps]}]}]\n")),
		WebhookConfigFile: mustWrite(t, "webhook.kubeconfig", []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: '"+hook.URL+"'}}]\nusers: [{name: u, user: {}}]\n")),
		WebhookDelivery:   server.AuditDelivery{Mode: "blocking-strict"}, WebhookBackoff: time.Millisecond,
	}})
	ctx, c := deadline(t), s.client(t)
	create(ctx, t, c, "stored")
	down.Store(true)
	if err := configMaps(c).Delete(ctx, "stored", metav1.DeleteOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("a delete that cannot be audited: %v", err)
	}
	down.Store(false)
	if _, err := configMaps(c).Get(ctx, "stored", metav1.GetOptions{}); err != nil {
		t.Errorf("the refused delete: %v", err)
	}
	if metrics := s.get(t, "/metrics"); !strings.Contains(metrics, "\napiserver_audit_requests_rejected_total 1\n") {
		t.Error("the refused request is not counted")
	}
}

// TestWrongAuditConfiguration names the flag, the file and the field.
func TestWrongAuditConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", auditPolicy)
	for want, config := range map[string]server.AuditConfig{
		"--audit-policy-file needs":                     {PolicyFile: good},
		"--audit-log-path needs":                        {LogPath: "-"},
		"--audit-webhook-config-file needs":             {WebhookConfigFile: "x"},
		"--audit-policy-file: open " + dir + "/missing": {PolicyFile: filepath.Join(dir, "missing"), LogPath: "-"},
		"--audit-policy-file: " + dir + "/pod: kind must be Policy, and apiVersion audit.k8s.io/v1; they are \"Pod\" and \"v1\"": {PolicyFile: file("pod", "apiVersion: v1\nkind: Pod\n"), LogPath: "-"},
		"/json: failed decoding: json: cannot unmarshal number":                                                                  {PolicyFile: file("json", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: 3\n"), LogPath: "-"},
		"/none: the file is empty":                                              {PolicyFile: file("none", ""), LogPath: "-"},
		`rules[0].level: Unsupported value: "Much"`:                             {PolicyFile: file("level", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Much}]\n"), LogPath: "-"},
		"--audit-log-format":                                                    {PolicyFile: good, LogPath: "-", LogFormat: "xml"},
		"--audit-webhook-config-file: " + dir + "/hook":                         {PolicyFile: good, WebhookConfigFile: file("hook", "kind: Config\nclusters: 3\n")},
		"--audit-log-mode \"wait\" is none of batch, blocking, blocking-strict": {PolicyFile: good, LogPath: "-", LogDelivery: server.AuditDelivery{Mode: "wait"}},
		"--audit-log-maxage":                                                    {PolicyFile: good, LogPath: "-", LogMaxAge: -1},
	} {
		_, err := server.Listen(server.Config{DataDir: t.TempDir(), Storage: server.Memory, SecurePort: server.AnyPort, Audit: config})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), ".go:") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
