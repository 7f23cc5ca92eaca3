package audit

import (
	"log/slog"
	"sync"
	"time"
)

// lossReportInterval is how often losses are logged.
const lossReportInterval = 10 * time.Second

// losses counts the events that a backend loses, and logs them now and then.
type losses struct {
	plugin  string
	metrics *metrics
	logger  *slog.Logger

	mu     sync.Mutex
	events int // since it was logged
	logged time.Time
}

// count counts events that are lost, by plugin.
func (l *losses) count(lost map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for plugin, n := range lost {
		l.metrics.lost.WithLabelValues(plugin).Add(float64(n))
		l.events += n
	}
	if now := time.Now(); l.events > 0 && now.Sub(l.logged) >= lossReportInterval {
		l.logger.Error("audit events are lost: the backend fails, or does not keep up", "backend", l.plugin, "events", l.events)
		l.logged, l.events = now, 0
	}
}

// countLast is count at the end, after which nothing else would be logged.
func (l *losses) countLast(lost map[string]int) {
	l.mu.Lock()
	l.logged = time.Time{}
	l.mu.Unlock()
	l.count(lost)
}
