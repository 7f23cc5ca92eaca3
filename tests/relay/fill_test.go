package relay

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/levelwiretest"
)

// countsPages counts the lists of config maps that go on from another one.
type countsPages struct {
	next  http.RoundTripper
	later *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c countsPages) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/api/v1/configmaps" && req.URL.Query().Get("continue") != "" {
		c.later.Add(1)
	}
	return c.next.RoundTrip(req)
}

// TestFillIsCompressed, and in pages, if the link to the upstream has little bandwidth, which
// --deltas says. The cache is known to be current as soon as it is there.
func TestFillIsCompressed(t *testing.T) {
	const count, size = 600, 2_000
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	for i := range count {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("large-", i)}, Data: map[string]string{"x": strings.Repeat("the same line\n", size/14)}}
		if _, err := direct.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config, link := behindProxy(t, upstream)
	var later atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countsPages{next, &later} })
	relay := startRelay(t, config, withDeltas)
	before := link.Stats().Bytes[faultnet.ToClient]
	// A year would mean that the age of what was listed is not known.
	if code, age := get(t, relay, "/api/v1/namespaces/default/configmaps?resourceVersion=0"); code != http.StatusOK || age > 600 {
		t.Errorf("the first list is answered with %d, and an Age of %d", code, age)
	}
	list, err := configMaps(t, relay).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) < count {
		t.Fatalf("%v, %v", list, err)
	}
	if bytes := link.Stats().Bytes[faultnet.ToClient] - before; bytes > count*size/5 {
		t.Errorf("%d bytes of the upstream for %d of objects", bytes, count*size)
	}
	if later.Load() != 1 {
		t.Errorf("%d pages after the first, want 1", later.Load())
	}
}
