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
	series := func() (n int) {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
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
