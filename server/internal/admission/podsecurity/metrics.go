package podsecurity

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// metrics are those that kube-apiserver has, with its names and labels.
type metrics struct {
	evaluations, exemptions, errors *prometheus.CounterVec
	// privileged are the evaluations of a pod's create and update in a namespace that
	// asks for nothing: most of them.
	privileged map[registry.Operation]prometheus.Counter
}

// standards is the newest version of the Pod Security Standards that the checks know.
// Versions after it count as one, so that labels of namespaces make no series.
var standards = api.MajorMinorVersion(1, 37)

// The modes and decisions of evaluations.
const (
	modeEnforce, modeAudit, modeWarn = "enforce", "audit", "warn"
	allow, deny                      = "allow", "deny"
)

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pod_security_" + name + "_total", Help: help}, append(labels, "request_operation", "resource", "subresource"))
	}
	m := &metrics{
		evaluations: counter("evaluations", "Evaluations of a pod or a template against a level; of audit and warn only those that violate it.", "decision", "policy_level", "policy_version", "mode"),
		exemptions:  counter("exemptions", "Requests that are exempt from Pod Security."),
		errors:      counter("errors", "Errors that prevent a normal evaluation. If they are not fatal, the restricted level holds.", "fatal"),
		privileged:  map[registry.Operation]prometheus.Counter{},
	}
	for operation, label := range operations {
		m.privileged[operation] = m.evaluations.WithLabelValues(allow, string(api.LevelPrivileged), api.VersionLatest, modeEnforce, label, "pod", "")
	}
	return m
}

var operations = map[registry.Operation]string{registry.Create: "create", registry.Update: "update"}

// Collectors returns the plugin's metrics.
func (p *Plugin) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.metrics.evaluations, p.metrics.exemptions, p.metrics.errors}
}

func (m *metrics) evaluated(q *registry.Request, decision string, level api.LevelVersion, mode string) {
	version := level.Version.String()
	switch {
	case level.Level == api.LevelPrivileged || level.Version.Latest():
		version = api.VersionLatest
	case standards.Older(level.Version):
		version = "future"
	}
	m.evaluations.WithLabelValues(decision, string(level.Level), version, mode, operations[q.Operation], resourceLabel(q), q.Subresource).Inc()
}

// allowedPrivileged counts a pod in a namespace that asks for nothing.
func (m *metrics) allowedPrivileged(q *registry.Request) {
	if counter := m.privileged[q.Operation]; counter != nil && q.Subresource == "" {
		counter.Inc()
		return
	}
	m.evaluated(q, allow, api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}, modeEnforce)
}

func (m *metrics) exempted(q *registry.Request) {
	m.exemptions.WithLabelValues(operations[q.Operation], resourceLabel(q), q.Subresource).Inc()
}

func (m *metrics) failed(q *registry.Request, fatal string) {
	m.errors.WithLabelValues(fatal, operations[q.Operation], resourceLabel(q), q.Subresource).Inc()
}

func resourceLabel(q *registry.Request) string {
	switch q.Resource.GroupResource() {
	case namespacesResource:
		return "namespace"
	case podsResource:
		return "pod"
	}
	return "controller"
}
