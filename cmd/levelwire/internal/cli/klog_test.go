package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestKlogFollowsTheLogger: what the Kubernetes libraries log stands where the command that
// began last logs, and commands may begin while others log.
func TestKlogFollowsTheLogger(t *testing.T) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			klog.V(9).InfoS("too much", "to", "say")
		}
	})
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if _, err := (&Logging{Level: "info", Format: "json"}).Logger(w); err != nil {
			t.Fatal(err)
		}
		klog.Background().WithValues("who", "klog").WithName("name").Info("said")
	}
	wg.Wait()
	for _, w := range []*bytes.Buffer{&first, &second} {
		if got := w.String(); strings.Count(got, "said") != 1 || !strings.Contains(got, `"who":"klog"`) || !strings.Contains(got, `"from":"klog"`) {
			t.Errorf("logged %q", got)
		}
	}
}
