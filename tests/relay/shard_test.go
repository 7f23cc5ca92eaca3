package relay

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// halves are the selectors of the parts 0/2 and 1/2.
var halves = []string{
	"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
	"shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')",
}

// TestShards: two relays keep one half each, of which they answer lists and watches. What
// they do not keep they pass on.
func TestShards(t *testing.T) {
	const count = 40
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	for i := range count / 2 {
		create(t, direct, fmt.Sprint("before-", i))
	}
	var relays []*levelwiretest.Server
	var watches []*client.Watch[*corev1.ConfigMap]
	for i, half := range halves {
		relay := startRelay(t, upstream.Config(), func(c *server.Config) { c.Relay.Shard = fmt.Sprintf("%d/2", i) })
		list, err := configMaps(t, relay).List(t.Context(), metav1.ListOptions{ShardSelector: half})
		if err != nil || list.ShardInfo == nil || len(list.Items) == 0 || len(list.Items) >= count/2 {
			t.Fatalf("%d objects, %v, %v", len(list.Items), list.ShardInfo, err)
		}
		w, err := configMaps(t, relay).Watch(t.Context(), metav1.ListOptions{ShardSelector: half, ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		relays, watches = append(relays, relay), append(watches, w)
	}
	for i := range count / 2 {
		create(t, direct, fmt.Sprint("after-", i))
	}
	seen := map[string]int{}
	for i, half := range halves {
		through := configMaps(t, relays[i])
		list, err := through.List(t.Context(), metav1.ListOptions{ShardSelector: half})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			seen[o.Name]++
		}
		passed := metric(t, relays[i], "levelwire_relay_passed_on_total")
		for _, selector := range []string{"", halves[1-i]} {
			other, err := through.List(t.Context(), metav1.ListOptions{ShardSelector: selector})
			if want := count + 1; err != nil || selector == "" && len(other.Items) != want || selector != "" && len(other.Items)+len(list.Items) != want {
				t.Errorf("a list of %q has %d objects: %v", selector, len(other.Items), err)
			}
		}
		if n := metric(t, relays[i], "levelwire_relay_passed_on_total"); n != passed+2 {
			t.Errorf("%v requests were passed on, want 2", n-passed)
		}
		if _, err := through.Get(t.Context(), "after-3", metav1.GetOptions{ResourceVersion: "0"}); err != nil {
			t.Error(err)
		}
		if _, err := through.List(t.Context(), metav1.ListOptions{ShardSelector: "half"}); err == nil {
			t.Error("a selector that cannot be read is accepted")
		}
		for n := 0; n < len(list.Items); n++ { // those before are in the list
			if o := list.Items[n]; o.Name[0] != 'a' {
				continue
			}
			event, err := watches[i].Next()
			if err != nil || event.Type != apiwatch.Added {
				t.Fatal(event, err)
			}
			seen[event.Object.Name]++
		}
	}
	for i := range count / 2 {
		if before, after := seen[fmt.Sprint("before-", i)], seen[fmt.Sprint("after-", i)]; before != 1 || after != 2 {
			t.Errorf("object %d was seen %d and %d times", i, before, after)
		}
	}
}

// TestShardErrors: a part that does not exist is refused.
func TestShardErrors(t *testing.T) {
	upstream := levelwiretest.Start(t)
	for _, text := range []string{"2/2", "a", "0/0"} {
		if _, err := server.Listen(server.Config{DataDir: t.TempDir(), Relay: &server.Relay{Config: upstream.Config(), Shard: text}}); err == nil {
			t.Errorf("--shard %s is accepted", text)
		}
	}
}
