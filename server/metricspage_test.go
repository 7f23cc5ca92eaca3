package server_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// documentedMetric is a row of the page.
type documentedMetric struct {
	kind   string
	labels []string
}

// metricsPage reads the rows of docs/operators/metrics.md.
func metricsPage(t *testing.T) map[string]documentedMetric {
	t.Helper()
	content, err := os.ReadFile("../docs/operators/metrics.md")
	must(t, err)
	rows := map[string]documentedMetric{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (counter|gauge|histogram) \\|([^|]*)\\| [^|]+ \\|$").FindAllStringSubmatch(string(content), -1) {
		var labels []string
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		rows[row[1]] = documentedMetric{row[2], labels}
	}
	return rows
}

// exposedMetrics reads /metrics.
func exposedMetrics(ctx context.Context, t *testing.T, c *client.Client) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := c.Raw(ctx, client.RawRequest{Path: "/metrics"})
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	must(t, err)
	return families
}

// literals are the string literals of the server's source.
func literals(t *testing.T) (found []string) {
	t.Helper()
	quoted := regexp.MustCompile(`"([a-z0-9_]+)"`)
	must(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, literal := range quoted.FindAllStringSubmatch(string(content), -1) {
			found = append(found, literal[1])
		}
		return err
	}))
	return found
}

// TestMetricsPage: docs/operators/metrics.md has what a server and a relay expose after they were
// used, with types and labels, and nothing that the source does not have.
func TestMetricsPage(t *testing.T) {
	ctx := deadline(t)
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600))
	r := start(t, server.Config{
		DataDir: dir, Storage: server.Embedded, UI: true, FilteredLists: true,
		Audit: server.AuditConfig{PolicyFile: policy, LogPath: filepath.Join(dir, "audit.log")},
	})
	c := r.client(t)
	admitAll(ctx, t, c)
	create(ctx, t, c, "a")
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig())
	must(t, err)
	relay := start(t, server.Config{DataDir: t.TempDir(), Relay: &server.Relay{Config: config}})
	for _, of := range []*client.Client{c, relay.client(t)} {
		_, err := configMaps(of).List(ctx, metav1.ListOptions{})
		must(t, err)
		watch, err := configMaps(of).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
		must(t, err)
		_, err = watch.Next()
		must(t, err)
		watch.Close()
	}
	page := metricsPage(t)
	exposed := exposedMetrics(ctx, t, c)
	for name, family := range exposedMetrics(ctx, t, relay.client(t)) {
		if exposed[name] == nil {
			exposed[name] = family
		}
	}
	for name, family := range exposed {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		slices.Sort(labels)
		kind := strings.ToLower(family.GetType().String())
		if row, ok := page[name]; !ok || row.kind != kind || !slices.Equal(row.labels, labels) {
			t.Errorf("docs/operators/metrics.md needs: | `%s` | %s | `%s` | %s | (it has %+v)", name, kind, strings.Join(labels, "`, `"), family.GetHelp(), row)
		}
	}
	source := literals(t)
	for name := range page {
		const shortest = 6 // of the part of a name behind a prefix that several share
		if exposed[name] == nil && !slices.ContainsFunc(source, func(literal string) bool { return len(literal) >= shortest && strings.HasSuffix(name, literal) }) {
			t.Errorf("docs/operators/metrics.md has %s, and the source does not", name)
		}
	}
	if len(exposed) < 60 || len(page) < len(exposed)-60 {
		t.Errorf("%d metrics are exposed, and %d on the page: too few to have been compared", len(exposed), len(page))
	}
}
