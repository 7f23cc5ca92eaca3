package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
)

// hangingWebhook is an audit webhook that answers nothing until it is released.
type hangingWebhook struct {
	*httptest.Server
	released chan struct{}
	events   atomic.Int64 // that were taken
}

func newHangingWebhook(t *testing.T) *hangingWebhook {
	w := &hangingWebhook{released: make(chan struct{})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		var list auditv1.EventList
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil || list.Kind != "EventList" {
			t.Errorf("the webhook gets %v, %s", err, list.Kind)
		}
		select {
		case <-w.released:
		case <-r.Context().Done():
		}
		w.events.Add(int64(len(list.Items)))
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *hangingWebhook) kubeconfig(t *testing.T, path string) {
	t.Helper()
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts: [{name: it, context: {cluster: it}}]\nclusters: [{name: it, cluster: {server: %q}}]\n", w.URL+"/events")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAuditWithAHangingWebhook: the command answers requests and writes the log file as
// if the webhook did not hang, loses what its buffer has no room for, and counts it.
func TestAuditWithAHangingWebhook(t *testing.T) {
	ctx, dir, hook := maintenanceContext(t), t.TempDir(), newHangingWebhook(t)
	policy, webhook, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "webhook.yaml"), filepath.Join(dir, "audit.log")
	hook.kubeconfig(t, webhook)
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n  verbs: [get]\n  resources: [{group: \"\", resources: [configmaps]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := startProcess(t, dir, "serve", "serve", "--storage=memory", "--secure-port=0", "--data-dir", filepath.Join(dir, "data"),
		"--audit-policy-file", policy, "--audit-log-path", log, "--audit-webhook-config-file", webhook, "--audit-webhook-batch-max-size=10", "--audit-webhook-batch-throttle-enable=false", "--audit-webhook-batch-buffer-size=100")
	if err := serve.awaitLine(ctx, "ready"); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "data", "admin.kubeconfig")
	c, err := client.FromKubeconfig(kubeconfig, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	const reads = 300
	for i := range reads {
		if _, err := client.For[*corev1.ConfigMap](c).Namespace("kube-system").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
			t.Fatalf("read %d: %v", i, err)
		}
	}
	lost := metricOf(t, kubeconfig, `apiserver_audit_error_total{plugin="buffered"}`)
	all := metricOf(t, kubeconfig, "apiserver_audit_event_total")
	if lost < 100 || all < reads {
		t.Errorf("%d of %d events are lost: the log and the webhook have room for 100 each", lost, all)
	}
	close(hook.released)
	c.CloseIdleConnections()
	if err := serve.terminate(ctx); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	logged := int64(strings.Count(string(content), "\n"))
	if got := hook.events.Load(); logged+got+lost < 2*reads || got < 100 {
		t.Errorf("%d events are in the log and %d at the webhook; %d were lost, of %d each", logged, got, lost, reads)
	}
	if err := serve.logged("audit events are lost"); err != nil {
		t.Error(err)
	}
}

// metricOf reads one metric of a server.
func metricOf(t *testing.T, kubeconfig, series string) int64 {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(text)
	if err != nil || found == nil {
		t.Fatalf("there is no metric %s: %v", series, err)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(value)
}
