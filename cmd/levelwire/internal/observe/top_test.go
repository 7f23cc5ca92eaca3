package observe

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

func configMapsOf(c *client.Client) client.Resource[*corev1.ConfigMap] {
	return client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault)
}

func create(t *testing.T, c *client.Client, name string) {
	t.Helper()
	if _, err := configMapsOf(c).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// otherKubernetes passes requests on, but has neither the debug API nor our metrics.
func otherKubernetes(t *testing.T, c *client.Client) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/debug/"):
			http.NotFound(w, r)
			return
		case r.URL.Path == "/metrics":
			_, _ = io.WriteString(w, `apiserver_longrunning_requests{verb="WATCH",resource="pods"} 7
apiserver_storage_objects{resource="pods"} 1234
apiserver_request_duration_seconds_sum{verb="LIST",resource="pods"} 5
apiserver_request_duration_seconds_count{verb="LIST",resource="pods"} 10
`)
			return
		}
		resp, err := c.Raw(r.Context(), client.RawRequest{Path: r.URL.RequestURI(), Header: r.Header})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(server.Close)
	other, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.CloseIdleConnections)
	return other
}

// TestTopOfOtherKubernetes shows what metrics alone have, and says that there is no
// history.
func TestTopOfOtherKubernetes(t *testing.T) {
	ctx, c := t.Context(), levelwiretest.Start(t).Client(client.Options{})
	create(t, c, "here")
	other := otherKubernetes(t, c)
	sample, err := takeSample(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	screen := (&topView{rows: 5}).draw(nil, sample)
	for _, want := range []string{`WATCHES, BY RESOURCE`, `pods +7`, `pods +1234`} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	if _, err := getDebug(ctx, other, "/debug/listwatch/history/api/v1/namespaces/default/configmaps/here"); err != errNoHistory {
		t.Error(err)
	}
}

// TestDifferences compares objects by path.
func TestDifferences(t *testing.T) {
	parse := func(text string) (object map[string]any) {
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	list := differences(
		parse(`{"a":1,"gone":true,"list":[{"name":"x","n":1},{"name":"y"}],"numbers":[1,2]}`),
		parse(`{"a":2,"new":null,"list":[{"name":"y"},{"name":"x","n":2}],"numbers":[1,3,4],"more":{"b":"c"}}`))
	var lines []string
	for _, d := range list {
		lines = append(lines, d.String())
	}
	want := []string{"  a: 1 -> 2", "- gone: true", "  list[x].n: 1 -> 2", `+ more: {"b":"c"}`, "  numbers[1]: 2 -> 3", "+ numbers[2]: 4"}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestDashboardNamesMetrics reads the dashboard of the server: every metric that it names
// is one of a server that has been used.
func TestDashboardNamesMetrics(t *testing.T) {
	ctx, c := t.Context(), levelwiretest.Start(t).Client(client.Options{})
	w, err := configMapsOf(c).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	create(t, c, "one")
	if _, err := w.Next(); err != nil {
		t.Fatal(err)
	}
	sample, err := takeSample(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../../docs/operators/grafana-server.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`\b(apiserver|levelwire|process|go)_[a-z0-9_]+`).FindAllString(target.Expr, -1) {
				named++
				if !sample.metrics.has(name) && !sample.metrics.has(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")) {
					t.Errorf("%s: there is no metric %s", panel.Title, name)
				}
			}
		}
	}
	if named < 10 {
		t.Error("the dashboard names only", named, "metrics")
	}
}
