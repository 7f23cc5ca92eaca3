package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// moreCounted is how many resources may have metrics beside those that are served: definitions come and go, and
// each has a name of its own, whose metrics would take memory for as long as the server runs.
const moreCounted = 100

// countedResources are the resources that have metrics.
type countedResources struct {
	served Resources // nil: they are not known, and nothing is forgotten

	mu    sync.RWMutex
	known map[schema.GroupVersionResource]struct{}
	most  int // how many there may be before those that are not served are forgotten
}

// ForgetUnserved has the metrics of resources that are not served any more be dropped when there are many. It must be
// called before anything is counted.
func (m *Metrics) ForgetUnserved(served Resources) {
	m.counted.served = served
	m.counted.most = len(served.All()) + moreCounted
}

// note notes that a resource has metrics, and drops those of others if there are too many.
func (m *Metrics) note(res *resource.Resource) {
	c, name := &m.counted, res.GroupVersionResource()
	if c.served == nil {
		return
	}
	c.mu.RLock()
	_, known := c.known[name]
	c.mu.RUnlock()
	if known {
		return
	}
	gone, left := c.add(name)
	if len(gone)*left > maxLooks {
		m.requests.Reset() // to look for those that are gone would hold up all requests for longer
		m.duration.Reset()
		m.Events.Reset()
		m.deprecated.Reset()
		return
	}
	for _, gone := range gone {
		labels := prometheus.Labels{"group": gone.Group, "version": gone.Version, "resource": gone.Resource}
		m.requests.DeletePartialMatch(labels)
		m.duration.DeletePartialMatch(labels)
		m.Watches.DeletePartialMatch(labels)
		m.Events.DeletePartialMatch(labels)
		m.deprecated.DeletePartialMatch(labels)
	}
}

// maxLooks is how many resources are looked at to find those whose metrics are dropped; beyond it all
// counters begin anew.
const maxLooks = 100_000

// add adds a resource, and returns those that are to be forgotten, and how many are left.
func (c *countedResources) add(name schema.GroupVersionResource) (gone []schema.GroupVersionResource, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[schema.GroupVersionResource]struct{}{}
	}
	c.known[name] = struct{}{}
	if len(c.known) <= c.most {
		return nil, 0
	}
	all := c.served.All()
	served := make(map[schema.GroupVersionResource]struct{}, len(all))
	for _, res := range all {
		served[res.GroupVersionResource()] = struct{}{}
	}
	for other := range c.known {
		if _, is := served[other]; !is && other != name {
			delete(c.known, other)
			gone = append(gone, other)
		}
	}
	c.most = max(len(all), len(c.known)) + moreCounted
	return gone, len(c.known)
}
