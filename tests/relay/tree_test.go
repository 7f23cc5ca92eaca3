package relay

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/levelwiretest"
)

// TestTree: three levels of relays, two behind each. Every watcher of every leaf sees every
// event, in order and at the upstream's versions, and the upstream serves the streams of two relays.
func TestTree(t *testing.T) {
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	begin := create(t, direct, "begin").ResourceVersion
	level := []*levelwiretest.Server{upstream}
	for range 3 {
		var next []*levelwiretest.Server
		for _, s := range level {
			next = append(next, startRelay(t, s.Config()), startRelay(t, s.Config()))
		}
		level = next
	}
	const events, watchers = 50, 20
	versions := make([]string, events)
	opened := make(chan struct{}, len(level)*watchers)
	var wait, written sync.WaitGroup
	written.Add(1)
	for n, leaf := range level {
		through := configMaps(t, leaf)
		for range watchers {
			wait.Go(func() {
				w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: begin})
				opened <- struct{}{}
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				var got []string
				for len(got) < events {
					event, err := w.Next()
					if err != nil {
						t.Errorf("leaf %d: %v", n, err)
						return
					}
					got = append(got, event.Object.ResourceVersion)
				}
				written.Wait()
				for i := range got {
					if got[i] != versions[i] {
						t.Errorf("leaf %d: event %d has version %s, want %s", n, i, got[i], versions[i])
						return
					}
				}
			})
		}
	}
	for range cap(opened) {
		<-opened
	}
	for i := range versions {
		versions[i] = create(t, direct, fmt.Sprint("event-", i)).ResourceVersion
	}
	written.Done()
	wait.Wait()
	// The relays behind the first two follow roles and bindings by their caches.
	if open := metric(t, upstream, "apiserver_longrunning_requests"); open > 4+2*2*roleStreams {
		t.Errorf("the upstream has %v open watches", open)
	}
}
