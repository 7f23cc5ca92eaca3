package relay

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// behindProxy returns the configuration of a server behind a network that fails.
func behindProxy(t *testing.T, s *levelwiretest.Server) (*rest.Config, *faultnet.Proxy) {
	t.Helper()
	config := s.Config()
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultnet.New(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	config.Host = "https://" + proxy.Addr()
	return config, proxy
}

// get returns the status and the Age of an answer.
func get(t *testing.T, s *levelwiretest.Server, path string) (code, age int) {
	t.Helper()
	response, err := s.Client(client.Options{Retry: client.RetryOptions{Max: -1}}).Raw(t.Context(), client.RawRequest{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	age, _ = strconv.Atoi(response.Header.Get("Age"))
	return response.StatusCode, age
}

// TestLostUpstream: while the upstream does not answer, the relay serves what it has, says
// how old that is, and is not ready after a while. Then it goes on without a list, and an
// open watch misses nothing.
func TestLostUpstream(t *testing.T) {
	for name, lose := range map[string]func(*faultnet.Proxy){
		"cut":       func(p *faultnet.Proxy) { p.Refuse(true); p.Cut() },
		"half-open": func(p *faultnet.Proxy) { p.Stall(faultnet.ToClient, true) },
	} {
		t.Run(name, func(t *testing.T) {
			upstream := levelwiretest.Start(t)
			config, proxy := behindProxy(t, upstream)
			relay := startRelay(t, config, func(c *server.Config) { c.Relay.MaxStaleness = 2 * time.Second })
			direct, through := configMaps(t, upstream), configMaps(t, relay)
			create(t, direct, "before")
			list, err := through.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			// A busy machine may have kept it from the upstream for longer than it may be stale.
			testwait.Stable(t, "the relay is ready at first", func() (any, bool) {
				code, _ := get(t, relay, "/readyz")
				return code, code == http.StatusOK
			})

			lose(proxy)
			const path = "/api/v1/namespaces/default/configmaps?resourceVersion=0"
			testwait.Stable(t, "the age grows", func() (any, bool) {
				code, age := get(t, relay, path)
				if code != http.StatusOK {
					t.Fatalf("a list of any state is answered with %d", code)
				}
				return age, age >= 3
			})
			if code, _ := get(t, relay, "/readyz"); code == http.StatusOK {
				t.Error("the relay is ready, although its caches are older than --max-staleness")
			}
			if name == "cut" {
				if code, _ := get(t, relay, "/api/v1/namespaces/default/configmaps"); code != http.StatusServiceUnavailable {
					t.Errorf("a consistent list is answered with %d", code)
				}
				if _, err := through.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); !apierrors.IsServiceUnavailable(err) {
					t.Errorf("a write: %v", err)
				}
			}
			for i := range 5 {
				create(t, direct, fmt.Sprint("meanwhile-", i))
			}
			if err := direct.Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}

			proxy.Heal()
			for i := range 5 {
				event, err := w.Next()
				if want := fmt.Sprint("meanwhile-", i); err != nil || event.Object.Name != want {
					t.Fatalf("%v, %v, want %s", event, err, want)
				}
			}
			if event, err := w.Next(); err != nil || event.Type != apiwatch.Deleted {
				t.Fatalf("%v, %v, want the deletion", event, err)
			}
			testwait.Stable(t, "the relay is ready and up to date again", func() (any, bool) {
				code, _ := get(t, relay, "/readyz")
				_, age := get(t, relay, path)
				return []int{code, age}, code == http.StatusOK && age < 3
			})
			if lists := metric(t, relay, "levelwire_relay_lists_total"); lists != 1 {
				t.Errorf("the relay has listed %v times", lists)
			}
		})
	}
}

// TestExpiredUpstream: when the upstream's history is gone, clients of the relay get what has
// changed as changes, and need not list.
func TestExpiredUpstream(t *testing.T) {
	upstream := levelwiretest.Start(t)
	config := upstream.Config()
	faults := &levelwiretest.Faults{}
	config.WrapTransport = faults.Wrap
	relay := startRelay(t, config)
	direct, through := configMaps(t, upstream), configMaps(t, relay)
	create(t, direct, "deleted")
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	remove := faults.Add(levelwiretest.Fault{Verb: "watch", Err: apierrors.NewServiceUnavailable("away")})
	faults.CutWatches()
	made := create(t, direct, "made")
	if err := direct.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	faults.Add(levelwiretest.Fault{Verb: "watch", Resource: "configmaps", Times: 1, Err: apierrors.NewResourceExpired("gone")})
	remove()
	got := map[string]apiwatch.EventType{}
	for range 2 {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		got[event.Object.Name] = event.Type
		if event.Object.Name == "made" && event.Object.ResourceVersion != made.ResourceVersion {
			t.Errorf("made at version %s, want %s", event.Object.ResourceVersion, made.ResourceVersion)
		}
	}
	if got["made"] != apiwatch.Added || got["deleted"] != apiwatch.Deleted {
		t.Errorf("%v", got)
	}
	if lists := metric(t, relay, "levelwire_relay_lists_total"); lists != 2 {
		t.Errorf("%v lists and differences, want one after the first", lists)
	}
}

// TestRestoredUpstream: when the upstream's versions go back, the watches of clients end, and
// nothing of the former state is shown after that.
func TestRestoredUpstream(t *testing.T) {
	tokens := func(c *server.Config) { c.TokenAuthFile = tokenFile(t) }
	first, second := levelwiretest.Start(t, tokens), levelwiretest.Start(t, tokens)
	balancer, err := faultnet.NewBalancer(hostOf(t, first))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = balancer.Close() })
	relay := startRelay(t, &rest.Config{Host: "https://" + balancer.Addr(), BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	direct, through := configMaps(t, first), configMaps(t, relay)
	for i := range 200 {
		create(t, direct, fmt.Sprint("lost-", i))
	}
	create(t, configMaps(t, second), "restored")
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 200 {
		t.Fatalf("%v, %v", list, err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	balancer.Replace(hostOf(t, first), hostOf(t, second))
	balancer.Kill(hostOf(t, first))
	first.Stop()
	for err == nil {
		_, err = w.Next()
	}
	testwait.Stable(t, "the relay shows the restored state", func() (any, bool) {
		list, err := through.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err, false
		}
		var names []string
		for _, m := range list.Items {
			names = append(names, m.Name)
		}
		return names, slices.Contains(names, "restored") && len(names) < 10
	})
	if rewinds := metric(t, relay, "levelwire_relay_rewinds_total"); rewinds == 0 {
		t.Error("it is not counted")
	}
}

func hostOf(t *testing.T, s *levelwiretest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestClientThatSawMore than the relay had when it was cut off: what the client knows and the
// relay never had may have been deleted meanwhile, and the client gets the deletion. So it does
// at the leaf of a tree, whose stream from the relay that was cut off has never ended by itself.
func TestClientThatSawMore(t *testing.T) {
	for name, hops := range map[string]int{"a relay": 1, "a leaf": 2, "a leaf's leaf": 3} {
		t.Run(name, func(t *testing.T) { clientThatSawMore(t, hops) })
	}
}

func clientThatSawMore(t *testing.T, hops int) {
	upstream := levelwiretest.Start(t)
	config := upstream.Config()
	faults := &levelwiretest.Faults{}
	config.WrapTransport = faults.Wrap
	relay := startRelay(t, config)
	leaf := relay
	for range hops - 1 {
		leaf = startRelay(t, leaf.Config())
	}
	direct, through := configMaps(t, upstream), configMaps(t, leaf)
	if _, err := through.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	remove := faults.Add(levelwiretest.Fault{Verb: "watch", Err: apierrors.NewServiceUnavailable("away")})
	faults.CutWatches()
	create(t, direct, "seen")
	version := create(t, direct, "other").ResourceVersion
	if err := direct.Delete(t.Context(), "seen", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := create(t, direct, "last").ResourceVersion
	faults.Add(levelwiretest.Fault{Verb: "watch", Resource: "configmaps", Times: 1, Err: apierrors.NewResourceExpired("gone")})
	remove()
	testwait.Stable(t, "the relay lists", func() (any, bool) { seen := metric(t, relay, "levelwire_relay_lists_total"); return seen, seen >= 2 })
	// The leaf has come past the client's version.
	if _, err := through.List(t.Context(), metav1.ListOptions{ResourceVersion: last, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}); err != nil {
		t.Fatal(err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, want := range []struct {
		event apiwatch.EventType
		name  string
	}{{apiwatch.Deleted, "seen"}, {apiwatch.Added, "last"}} {
		if event, err := w.Next(); err != nil || event.Type != want.event || event.Object.Name != want.name {
			t.Fatalf("%v, %v, want %v", event, err, want)
		}
	}
}
