package audit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// logged runs f with an Auditor that logs everything at a level, and returns the events.
func logged(t *testing.T, level string, f func(a *Auditor)) (events []auditv1.Event) {
	t.Helper()
	dir := t.TempDir()
	config := Config{PolicyFile: filepath.Join(dir, "policy"), LogPath: filepath.Join(dir, "log")}
	if err := os.WriteFile(config.PolicyFile, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: "+level+"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := New(config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f(a)
	a.Close(t.Context())
	content, err := os.ReadFile(config.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func begin(a *Auditor, long bool) *Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	r.Header.Set("User-Agent", strings.Repeat("a", 5000))
	q := a.Begin(r, Attributes{Attributes: auth.Attributes{User: auth.User{Name: "jane"}, Verb: "list", Version: "v1", Resource: "pods"}, Long: long}, "id", time.Now())
	if q != nil {
		q.Received()
	}
	return q
}

// TestPanicIsAStage, and the last one.
func TestPanicIsAStage(t *testing.T) {
	events := logged(t, "Metadata", func(a *Auditor) {
		q := begin(a, false)
		q.Panicked("a bug")
		q.Started(http.StatusInternalServerError)
		q.Completed(http.Header{})
	})
	if len(events) != 2 || events[1].Stage != "Panic" || events[1].ResponseStatus.Code != 500 || !strings.Contains(events[1].ResponseStatus.Message, "a bug") {
		t.Errorf("%+v", events)
	}
	if n := len(events[0].UserAgent); n > maxUserAgent+20 {
		t.Errorf("a user agent of %d bytes", n)
	}
}

// TestLargeAnswersAreLeftOut of their events, which say so.
func TestLargeAnswersAreLeftOut(t *testing.T) {
	events := logged(t, "RequestResponse", func(a *Auditor) {
		q := begin(a, false)
		q.Started(http.StatusOK)
		for q.KeepsResponse() {
			q.Wrote(make([]byte, 1<<20))
		}
		q.Completed(http.Header{})
	})
	if len(events) != 2 || events[1].ResponseObject != nil || events[1].Annotations[annotationTruncated] != "true" {
		t.Errorf("%+v", events)
	}
}

// TestWatchThatIsCutEarly has all three stages, and no answer is kept of it.
func TestWatchThatIsCutEarly(t *testing.T) {
	events := logged(t, "RequestResponse", func(a *Auditor) {
		q := begin(a, true)
		if q.KeepsResponse() {
			t.Error("the events of a watch are kept")
		}
		q.Completed(http.Header{})
	})
	if len(events) != 3 || events[1].Stage != "ResponseStarted" || events[2].ResponseStatus.Message != "Connection closed early" {
		t.Errorf("%+v", events)
	}
}

// TestSlowRequests: their last event says how long they took, and their parts, as in Kubernetes. One
// from the future is quick however slow the machine is, and a watch is open for as long as its client wants.
func TestSlowRequests(t *testing.T) {
	for _, test := range []struct {
		verb string
		age  time.Duration
		want bool
	}{{"list", -time.Hour, false}, {"list", time.Minute, true}, {"watch", time.Minute, false}} {
		events := logged(t, "Metadata", func(a *Auditor) {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
			q := a.Begin(r, Attributes{Attributes: auth.Attributes{Verb: test.verb}}, "id", time.Now().Add(-test.age))
			q.Received()
			for _, part := range []reporter.Part{reporter.Storage, reporter.ValidatingWebhook} {
				q.Took(part, time.Second)
				q.Took(part, 2*time.Second)
			}
			q.Started(http.StatusOK)
			q.Completed(http.Header{})
		})
		if !test.want {
			if len(events[1].Annotations) > 0 {
				t.Errorf("a %s %v ago: %v", test.verb, test.age, events[1].Annotations)
			}
			continue
		}
		took, err := time.ParseDuration(events[1].Annotations["apiserver.latency.k8s.io/total"])
		if err != nil || took < test.age || took > 2*test.age || len(events[0].Annotations) > 0 {
			t.Errorf("a %s %v ago: %v, %v", test.verb, test.age, events[1].Annotations, err)
		}
		delete(events[1].Annotations, "apiserver.latency.k8s.io/total")
		if want := (map[string]string{"apiserver.latency.k8s.io/etcd": "3s", "apiserver.latency.k8s.io/validating-webhook": "2s"}); !maps.Equal(events[1].Annotations, want) {
			t.Errorf("a %s %v ago has taken %v, want %v", test.verb, test.age, events[1].Annotations, want)
		}
	}
}

// TestManyAddresses in a header: the last ones are kept, which the nearest proxies have
// added, and with them that of the connection.
func TestManyAddresses(t *testing.T) {
	events := logged(t, "Metadata", func(a *Auditor) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		r.Header.Set("X-Forwarded-For", strings.Repeat("::,", 20_000)+"192.0.2.7")
		r.RemoteAddr = "192.0.2.8:1234"
		q := a.Begin(r, Attributes{Attributes: auth.Attributes{Verb: "list"}}, "id", time.Now())
		q.Received()
		q.Completed(http.Header{})
	})
	if ips := events[0].SourceIPs; len(ips) != maxSourceIPs || ips[maxSourceIPs-2] != "192.0.2.7" || ips[maxSourceIPs-1] != "192.0.2.8" {
		t.Errorf("%d addresses, the last are %q", len(ips), ips[max(0, len(ips)-3):])
	}
}

// TestLevelNone costs nothing but the decision.
func TestLevelNone(t *testing.T) {
	if events := logged(t, "None", func(a *Auditor) {
		if begin(a, false) != nil {
			t.Error("a request that the policy leaves out is audited")
		}
	}); len(events) != 0 {
		t.Errorf("%+v", events)
	}
}
