package apiserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func counterValue(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	must(t, c.Write(&m))
	return m.GetCounter().GetValue()
}

func gaugeValue(t testing.TB, g prometheus.Gauge) float64 {
	t.Helper()
	var m dto.Metric
	must(t, g.Write(&m))
	return m.GetGauge().GetValue()
}

func TestMetricsCountRequests(t *testing.T) {
	c := newCluster(t)
	seed(c)
	c.get("/api/v1/pods")
	c.get("/api/v1/namespaces/a/pods/none")
	c.do(http.MethodPost, "/healthz", "")
	body := string(c.get("/metrics").body)
	for _, want := range []string{
		`apiserver_request_total{code="200",group="",resource="pods",subresource="",verb="list",version="v1"} 1`,
		`apiserver_request_total{code="404",group="",resource="pods",subresource="",verb="get",version="v1"} 1`,
		`apiserver_request_total{code="405",group="",resource="",subresource="",verb="POST",version=""} 1`,
		`apiserver_request_duration_seconds_count{group="",resource="pods",verb="list",version="v1"} 1`,
		`levelwire_cache_objects{group="",resource="pods"} 3`,
		`levelwire_cache_events_total{group="",resource="pods"} 3`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}
