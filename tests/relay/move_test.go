package relay

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/levelwiretest"
)

// TestManyMoveToANewRelay: clients whose relay has gone resume at another one that has just
// started, each from the version that it has, and the upstream sees one of them.
func TestManyMoveToANewRelay(t *testing.T) {
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	const clients = 200
	versions := make([]string, clients)
	for i := range versions {
		versions[i] = create(t, direct, fmt.Sprintf("object-%03d", i)).ResourceVersion
	}
	config := upstream.Config()
	faults := &levelwiretest.Faults{}
	config.WrapTransport = faults.Wrap
	relay := startRelay(t, config)
	through := configMaps(t, relay)
	var wait sync.WaitGroup
	for i := range versions {
		wait.Go(func() {
			w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: versions[i]})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			for j := i + 1; j < clients; j++ {
				event, err := w.Next()
				if want := fmt.Sprintf("object-%03d", j); err != nil || event.Object.Name != want || event.Object.ResourceVersion != versions[j] {
					t.Errorf("client %d: %v, %v, want %s", i, event, err, want)
					return
				}
			}
		})
	}
	wait.Wait()
	if passed := metric(t, relay, "levelwire_relay_older_watches_total"); passed != 0 {
		t.Errorf("%v watches were passed on", passed)
	}
	// While the cache is filled, the relay asks for the version one question after the other, each for all
	// that wait by then. How many questions that are depends on the machine, not on the clients.
	if lists := faults.Count(levelwiretest.Fault{Verb: "list", Resource: "configmaps"}); lists > clients/4 {
		t.Errorf("the upstream has got %d lists", lists)
	}
	// A client whose version is older than all before it costs one watch, which brings what happened since. In
	// a random order that are about six of 200 clients, if the relay serves one after the other.
	if watches := faults.Count(levelwiretest.Fault{Verb: "watch", Resource: "configmaps"}); watches > clients/4 {
		t.Errorf("the upstream has got %d watches", watches)
	}
	if read := metric(t, relay, "levelwire_relay_lists_total"); read != 1 {
		t.Errorf("the cache was filled %v times", read)
	}
}
