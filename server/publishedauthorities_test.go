package server

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestServersAgreeOnAuthorities: what two servers with other front proxies publish together changes no more when both have
// added their part, in whichever order: each write wakes the other server.
func TestServersAgreeOnAuthorities(t *testing.T) {
	const key = "requestheader-allowed-names"
	one, two := map[string][]string{key: {"proxy-a", "front-proxy-client"}}, map[string][]string{key: {"proxy-b", "front-proxy-client"}}
	both := mergeAuthentication(mergeAuthentication(nil, one), two)
	if want := `["proxy-a","front-proxy-client","proxy-b"]`; both[key] != want {
		t.Errorf("%s, want %s", both[key], want)
	}
	for _, own := range []map[string][]string{one, two} {
		if again := mergeAuthentication(both, own); !maps.Equal(again, both) {
			t.Errorf("%v becomes %v", both, again)
		}
	}
}

// publishing is a server that keeps the ConfigMap, in a bubble of synctest, and nothing else.
type publishing struct {
	*testing.T
	maps    registry.Registry
	refuses atomic.Bool // of the writes of ConfigMaps
	asked   atomic.Int64
}

// publish runs f beside it. before is called before it begins.
func publish(t *testing.T, before, f func(*publishing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		store, err := memory.Open(memory.Options{})
		must(err)
		defer func() { must(store.Close()) }()
		table := builtin.Table()
		configMaps := table.Lookup("", "v1", "configmaps")
		cache := watchcache.New(configMaps, watchcache.Options{})
		set, err := registry.NewSet(registry.Config{Store: store, Resources: table, Cache: func(stored *resource.Resource) *watchcache.Cache {
			if stored == configMaps {
				return cache
			}
			return nil
		}})
		must(err)
		must(namespace.Ensure(t.Context(), set, metav1.NamespaceSystem))
		p := &publishing{T: t}
		p.maps, _ = set.Lookup("", "v1", "configmaps")
		set.Admit(func(context.Context, *registry.Request) error {
			p.asked.Add(1)
			if p.refuses.Load() {
				return errors.New("refused")
			}
			return nil
		})
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		dir := t.TempDir()
		authority, err := pki.LoadOrCreateAuthority(dir, time.Now)
		must(err)
		s := &Server{config: Config{Logger: log}, ready: make(chan struct{}), identity: &identity{
			clientCAs:  authentication.NewAuthorities([]*x509.Certificate{authority.Certificate()}),
			frontProxy: &frontProxy{dir: dir, log: log},
		}}
		before(p)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() {
			_ = feed.New(store, []*watchcache.Cache{cache}, feed.Options{}).Run(ctx)
			ended <- struct{}{}
		}()
		go func() {
			if err := s.keepAuthentication(ctx, set); err != nil {
				t.Error(err)
			}
			ended <- struct{}{}
		}()
		close(s.ready)
		synctest.Wait()
		f(p)
		cancel()
		<-ended
		<-ended
	})
}

// published returns the content of the ConfigMap; nil if there is none.
func (p *publishing) published() map[string]string {
	p.Helper()
	found, err := p.maps.GetFromStore(p.Context(), metav1.NamespaceSystem, authenticationConfigMap)
	if err != nil {
		return nil
	}
	return found.(*corev1.ConfigMap).Data
}

// TestAuthoritiesArePublishedAfterAFailure: a write that has failed is tried again after a second, and then ever less often up to
// once a minute.
func TestAuthoritiesArePublishedAfterAFailure(t *testing.T) {
	refuse := func(p *publishing) { p.refuses.Store(true) }
	publish(t, refuse, func(p *publishing) {
		p.refuses.Store(false)
		time.Sleep(publishRetryAfter)
		synctest.Wait()
		if p.published()["client-ca-file"] == "" {
			t.Errorf("a second after the failure the ConfigMap has %v", p.published())
		}
	})
	publish(t, refuse, func(p *publishing) {
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if asked := p.asked.Load(); asked > 70 {
			t.Errorf("%d writes in an hour in which all were refused", asked)
		}
		p.refuses.Store(false)
		time.Sleep(renewInterval)
		synctest.Wait()
		if p.published()["client-ca-file"] == "" {
			t.Errorf("a minute after an hour of failures the ConfigMap has %v", p.published())
		}
	})
}

// TestAuthoritiesReplaceAConfigMapWithoutRoom: what others have written there does not keep the server from publishing.
func TestAuthoritiesReplaceAConfigMapWithoutRoom(t *testing.T) {
	fill := func(p *publishing) {
		full := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: authenticationConfigMap}, Data: map[string]string{"x": strings.Repeat("x", 1<<20)},
		}
		if _, err := p.maps.Create(p.Context(), metav1.NamespaceSystem, full, registry.WriteOptions{}); err != nil {
			p.Fatal(err)
		}
	}
	publish(t, fill, func(p *publishing) {
		if data := p.published(); data["client-ca-file"] == "" || data["x"] != "" {
			t.Errorf("the ConfigMap has %d keys, the authority is %q", len(data), data["client-ca-file"])
		}
	})
}
