package metrics

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/levelwire/levelwire/client"
)

// gather returns the values of counters and gauges without labels other than the
// client's.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// A client whose credentials come from a plugin counts what it does, and client-go
// what the plugin does.
func TestClientAndExecPlugins(t *testing.T) {
	plugins := ExecPlugins()
	if plugins != ExecPlugins() {
		t.Error("two collectors of the same process")
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer secret" || strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		_, _ = io.WriteString(w, `{"metadata":{"name":"a"}}`)
	}))
	t.Cleanup(s.Close)
	before := gather(t, plugins)["rest_client_exec_plugin_call_total"]
	credential := filepath.Join(t.TempDir(), "credential")
	if err := os.WriteFile(credential, []byte(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ExecProvider: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{credential}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}, client.Options{ContentType: client.Protobuf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if _, err := client.For[*corev1.Pod](c).Namespace("a").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := gather(t, Client("test", c.Stats))
	for name, want := range map[string]float64{"active_watches": 0, "protobuf_refused": 1, "credential_reloads_total": 0, "received_bytes_total": 25} {
		if value, ok := got["levelwire_client_"+name]; !ok || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	got = gather(t, plugins)
	if got["rest_client_exec_plugin_call_total"] != before+1 || !math.IsInf(got["rest_client_exec_plugin_ttl_seconds"], 1) {
		t.Errorf("plugins: %v", got)
	}
}
