package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestInventedLabels: a client chooses methods and names of subresources, before it is
// authenticated. They add no metrics, and need not be UTF-8.
func TestInventedLabels(t *testing.T) {
	m := New()
	series := func() int { return seriesOf(t, m) }
	pods := &resource.Resource{Version: "v1", Plural: "pods"}
	observe := func(method, subresource string) {
		m.Observe(method, &request.Record{Code: 401}, time.Second)
		m.Observe(method, &request.Record{Code: 404, Info: &request.Info{Verb: "get", Resource: pods, Subresource: subresource}}, time.Second)
	}
	observe("GET", "status")
	observe("INVENTED", "invented")
	before := series()
	for i := range 1000 {
		observe(fmt.Sprint("METHOD-", i), fmt.Sprint("subresource-", i))
	}
	observe("\xff", "\xff")
	if after := series(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func seriesOf(t *testing.T, m *Metrics) (n int) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

// table are the resources that are served.
type table []*resource.Resource

func (t *table) All() []*resource.Resource { return *t }

// TestDefinitionsThatComeAndGo: what was counted of resources that are not served any more is forgotten.
func TestDefinitionsThatComeAndGo(t *testing.T) {
	m := New()
	pods := &resource.Resource{Version: "v1", Plural: "pods"}
	served := &table{pods}
	m.ForgetUnserved(served)
	before, most := seriesOf(t, m), 0
	for i := range 1000 {
		custom := &resource.Resource{Group: "example.com", Version: "v1", Plural: fmt.Sprint("plural", i)}
		*served = table{pods, custom}
		for _, res := range *served {
			m.Observe("GET", &request.Record{Code: 200, Info: &request.Info{Verb: "get", Resource: res}}, time.Second)
		}
		if i%50 == 0 {
			most = max(most, seriesOf(t, m))
		}
	}
	if most-before > 3*(moreCounted+10) {
		t.Errorf("%d series became %d", before, most)
	}
	all := table{pods}
	for i := range 500 {
		all = append(all, &resource.Resource{Group: "example.com", Version: "v2", Plural: fmt.Sprint("plural", i)})
	}
	*served = all
	for _, res := range all {
		m.Observe("GET", &request.Record{Code: 200, Info: &request.Info{Verb: "get", Resource: res}}, time.Second)
	}
	if now := seriesOf(t, m); now-before < 2*500 {
		t.Errorf("of 501 resources that are served, there are %d series", now-before)
	}
}
