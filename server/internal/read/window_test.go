package read

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// fillWithPods puts pods into the cache as a feed does, by their numbers.
func (f *fixture) fillWithPods(n int) {
	f.t.Helper()
	objects := make([]*watchcache.Object, n)
	for i := range objects {
		key := fmt.Sprintf("ns-%03d/pod-%07d", i*1000/n, i)
		namespace, name, _ := strings.Cut(key, "/")
		value := fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"labels":{"app":"a%d"}},"spec":{"nodeName":"n%d"}}`, name, namespace, i%100, i%5000)
		object, err := f.cache.Decode(key, value, storage.Revision(n-i))
		must(f.t, err)
		objects[i] = object
	}
	_, err := f.cache.Fill(objects, storage.Revision(n))
	must(f.t, err)
}

// TestSortedWindowsAreForgotten: an order keeps the objects of its time, so it is not kept for
// long, and there are few.
func TestSortedWindowsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(s *setup) { s.unfed = true })
		f.fillWithPods(100)
		windows := NewWindows(f.reader)
		read := func(window Window) string {
			page, total, err := windows.Read(t.Context(), Scope{Resource: f.pods}, &metav1.ListOptions{ResourceVersion: "0"}, window)
			must(t, err)
			if total != 100 {
				t.Errorf("%d objects", total)
			}
			for o := range page.Items {
				return o.Attributes.Name
			}
			return ""
		}
		for _, by := range []string{"name", "created", "changed", "label:app"} {
			read(Window{SortBy: by, Limit: 1})
		}
		if n := len(windows.sorted); n != maxSorted {
			t.Errorf("%d orders are remembered", n)
		}
		if first, last := read(Window{SortBy: "changed", Limit: 1}), read(Window{SortBy: "changed", Descending: true, Limit: 1}); first != "pod-0000099" || last != "pod-0000000" {
			t.Errorf("from %s to %s", first, last)
		}
		time.Sleep(sortedLifetime + time.Second)
		synctest.Wait()
		if n := len(windows.sorted); n != 0 {
			t.Errorf("%d orders are remembered for ever", n)
		}
	})
}

// BenchmarkWindow reads windows of a million pods.
func BenchmarkWindow(b *testing.B) {
	f := newFixture(b, func(s *setup) { s.unfed = true })
	f.fillWithPods(1_000_000)
	for name, window := range map[string]Window{
		"first": {Limit: 50}, "middle": {Offset: 500_000, Limit: 50}, "sorted": {SortBy: "created", Limit: 50}, "sorted-again": {SortBy: "name", Offset: 900_000, Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			windows := NewWindows(f.reader)
			for b.Loop() {
				if name == "sorted" {
					windows = NewWindows(f.reader) // which remembers nothing
				}
				_, _, err := windows.Read(b.Context(), Scope{Resource: f.pods}, &metav1.ListOptions{ResourceVersion: "0"}, window)
				must(b, err)
			}
		})
	}
}
