package relay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// TestRelayAudits what it answers itself, which the upstream's audit log cannot have, and what
// it passes on.
func TestRelayAudits(t *testing.T) {
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, resources: [{group: '', resources: [configmaps]}]}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, relay := upstreamWithRelay(t, func(c *server.Config) {
		c.Audit = server.AuditConfig{PolicyFile: policy, LogPath: log, LogDelivery: server.AuditDelivery{Mode: "blocking"}}
	})
	through := configMaps(t, relay)
	create(t, through, "written")
	if _, err := through.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	verbs := map[string]bool{}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if event.User.Username != "" && event.ObjectRef.Resource == "configmaps" && event.ResponseStatus.Code < 300 {
			verbs[event.Verb] = true
		}
	}
	if !verbs["create"] || !verbs["list"] {
		t.Errorf("the audit log has %v:\n%s", verbs, content)
	}
}

// TestRelayOverGosHTTP2 serves watches as over our own.
func TestRelayOverGosHTTP2(t *testing.T) {
	upstream := levelwiretest.Start(t)
	relay := startRelay(t, upstream.Config(), func(c *server.Config) { c.HTTP2Server, c.ExactHistory = server.HTTP2NetHTTP, true })
	through := configMaps(t, relay)
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	made := create(t, configMaps(t, upstream), "here")
	if event, err := w.Next(); err != nil || event.Object.ResourceVersion != made.ResourceVersion {
		t.Fatalf("%v, %v, want version %s", event, err, made.ResourceVersion)
	}
	response, err := relay.Client(client.Options{}).Raw(t.Context(), client.RawRequest{Path: "/healthz"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.ProtoMajor != 2 {
		t.Errorf("answered over %s", response.Proto)
	}
}
