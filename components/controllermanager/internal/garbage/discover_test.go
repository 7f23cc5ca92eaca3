package garbage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// discovered is an API server in memory, whose documents say what it serves. Each of its
// resources has one object, without a namespace, whose uid is the resource's name.
type discovered struct {
	mu sync.Mutex
	// served has the versions of example.com, the preferred one first, and the resources of
	// each. Those of gone.example.com are not known.
	served    []version
	broken    string // a resource that cannot be listed
	ownerless string // a resource whose object has an owner that is gone
	deletions []string
}

type version struct {
	name      string
	resources []string
}

func (d *discovered) set(change func(d *discovered)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// RoundTrip implements http.RoundTripper.
func (d *discovered) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	code, body := d.answer(r)
	d.mu.Unlock()
	resp := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(body))}
	if r.URL.Query().Get("watch") == "true" && code == http.StatusOK {
		resp.Body = silent{r.Context()}
	}
	return resp, nil
}

// answer needs mu.
func (d *discovered) answer(r *http.Request) (code int, body string) {
	switch r.URL.Path {
	case "/api":
		return http.StatusOK, `{"kind":"APIVersions","versions":[]}`
	case "/apis":
		var versions []string
		for _, v := range d.served {
			versions = append(versions, fmt.Sprintf(`{"version":%q}`, v.name))
		}
		return http.StatusOK, fmt.Sprintf(`{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[%s],"preferredVersion":%s},`+
			`{"name":"gone.example.com","versions":[{"version":"v1"}]}]}`, strings.Join(versions, ","), versions[0])
	case "/apis/gone.example.com/v1":
		return http.StatusServiceUnavailable, `{"kind":"Status","status":"Failure","code":503,"reason":"ServiceUnavailable"}`
	}
	for _, v := range d.served {
		rest, ok := strings.CutPrefix(r.URL.Path, "/apis/example.com/"+v.name)
		if !ok {
			continue
		}
		if rest == "" {
			var all []string
			for _, name := range v.resources {
				all = append(all, fmt.Sprintf(`{"name":%[1]q,"kind":%[1]q,"verbs":["list","watch","delete"]}`, name))
			}
			return http.StatusOK, fmt.Sprintf(`{"kind":"APIResourceList","resources":[%s]}`, strings.Join(all, ","))
		}
		resource, name, _ := strings.Cut(rest[1:], "/")
		switch {
		case !slices.Contains(v.resources, resource):
		case resource == d.broken:
			return http.StatusInternalServerError, `{"kind":"Status","status":"Failure","code":500,"reason":"InternalError","message":"conversion webhook"}`
		case name == "":
			owners := ""
			if resource == d.ownerless {
				owners = fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"example.com/%s","kind":%q,"name":"missing","uid":"missing"}]`, v.name, resource)
			}
			return http.StatusOK, fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[`+
				`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"one","uid":%q,"resourceVersion":"5"%s}}]}`, resource, owners)
		case r.Method == http.MethodDelete:
			d.deletions = append(d.deletions, resource+"/"+name)
			return http.StatusOK, `{"kind":"Status","status":"Success"}`
		}
	}
	return http.StatusNotFound, `{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}`
}

// silent is a watch without events.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (silent) Close() error               { return nil }

// collects runs a test with a collector of a server.
func collects(t *testing.T, d http.RoundTripper, test func(t *testing.T, ctx context.Context, c *Controller)) {
	synctest.Test(t, func(t *testing.T) {
		cl, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return d }})
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(cl, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer c.stopWatching()
		defer cancel()
		test(t, ctx, c)
	})
}

// The objects of a resource that cannot be listed are not known. Those of the others are
// collected nevertheless.
func TestCollectorBeginsBesideAResourceThatCannotBeListed(t *testing.T) {
	d := &discovered{served: []version{{"v1", []string{"gadgets", "widgets"}}}, broken: "gadgets", ownerless: "widgets"}
	collects(t, d, func(t *testing.T, ctx context.Context, c *Controller) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(2 * syncPatience)
		d.set(func(d *discovered) {
			if !slices.Equal(slices.Compact(d.deletions), []string{"widgets/one"}) {
				t.Errorf("deleted %q", d.deletions)
			}
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A resource is watched in one version, also while a group cannot be asked that has nothing
// to do with it: what is served in another version, or no more, is given up as soon as that is
// known, and takes no object out of the graph that the other version has.
func TestVersionsChangeWhileAGroupCannotBeAsked(t *testing.T) {
	v1, v2, none := version{"v1", []string{"widgets"}}, version{"v2", []string{"widgets"}}, version{"v2", []string{"gadgets"}}
	for name, tt := range map[string]struct {
		served []version
		want   []string // is watched
		known  string   // a uid, that of a resource
	}{
		"nothing changes":                 {[]version{v1}, []string{"v1 widgets"}, "widgets"},
		"another version is preferred":    {[]version{v2, v1}, []string{"v2 widgets"}, "widgets"},
		"another version takes its place": {[]version{v2}, []string{"v2 widgets"}, "widgets"},
		"the preferred version lacks it":  {[]version{none, v1}, []string{"v1 widgets", "v2 gadgets"}, "widgets"},
		// The group that cannot be asked may be its own, as far as this shows.
		"it is not served": {[]version{none}, []string{"v1 widgets", "v2 gadgets"}, "gadgets"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &discovered{served: []version{v1}}
			collects(t, d, func(t *testing.T, ctx context.Context, c *Controller) {
				discover := func() {
					if err := c.discover(ctx); err == nil || !strings.Contains(err.Error(), "gone.example.com") {
						t.Errorf("the group that cannot be asked: %v", err)
					}
					time.Sleep(5 * time.Minute) // a resource that has gone is believed to have
				}
				discover()
				d.set(func(d *discovered) { d.served = tt.served })
				discover()
				var watched []string
				for resource := range c.watching {
					watched = append(watched, resource.Version+" "+resource.Resource)
				}
				slices.Sort(watched)
				if !slices.Equal(watched, tt.want) {
					t.Errorf("watches %q, want %q", watched, tt.want)
				}
				if _, ok := c.graph.get(types.UID(tt.known)); !ok {
					t.Errorf("the graph lacks the object of %s: it has %v", tt.known, slices.Collect(maps.Keys(c.graph.nodes)))
				}
			})
		})
	}
}

// What is served is looked at after each event of what may have changed that, and otherwise only once in a while.
func TestDefinitionsAreFollowed(t *testing.T) {
	v1 := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	object := &metadata{}
	for kind, resource := range map[string]struct {
		schema.GroupVersionResource
		defines bool
	}{
		"a definition":       {v1("apiextensions.k8s.io", "customresourcedefinitions"), true},
		"an APIService":      {v1("apiregistration.k8s.io", "apiservices"), true},
		"another definition": {v1("example.com", "customresourcedefinitions"), false},
		"another APIService": {v1("example.com", "apiservices"), false},
		"a Service":          {v1("", "services"), false},
	} {
		for event, happen := range map[string]func(informer.Handler[*metadata]){
			"comes":   func(h informer.Handler[*metadata]) { h.OnAdd(object, false) },
			"changes": func(h informer.Handler[*metadata]) { h.OnUpdate(object, object) }, // as its status does
			"goes":    func(h informer.Handler[*metadata]) { h.OnDelete(object, false) },
		} {
			t.Run(kind+" "+event, func(t *testing.T) {
				d := &discovered{served: []version{{"v1", []string{"widgets"}}}}
				collects(t, d, func(t *testing.T, ctx context.Context, c *Controller) {
					knows := func() bool {
						c.mu.Lock()
						defer c.mu.Unlock()
						return len(c.watching) > 1
					}
					_ = c.discover(ctx) // one group cannot be asked
					go c.keepDiscovering(ctx)
					synctest.Wait()
					happen(c.handlerOf(resource.GroupVersionResource))
					synctest.Wait()
					d.set(func(d *discovered) { d.served = []version{{"v1", []string{"gadgets", "widgets"}}} }) // a little later
					time.Sleep(2 * settle)
					if knows() != resource.defines {
						t.Errorf("%v after the event the collector watches the other kind: %v", 2*settle, knows())
					}
					time.Sleep(rediscover)
					if !knows() {
						t.Error("the collector never looks again what is served")
					}
				})
			})
		}
	}
}

// That a group cannot be asked for a moment, as while its server starts or ends, is no warning.
// That it goes on is one.
func TestDiscoveryThatFailsForAMomentIsNoWarning(t *testing.T) {
	d := &discovered{served: []version{{"v1", []string{"widgets"}}}}
	collects(t, d, func(t *testing.T, ctx context.Context, c *Controller) {
		var warnings atomic.Int64 // of anything: nothing else happens here
		c.log = slog.New(slog.NewTextHandler(counter{&warnings}, &slog.HandlerOptions{Level: slog.LevelWarn}))
		go c.keepDiscovering(ctx)
		for range 2 { // at once, and once more when that has settled
			c.served <- struct{}{}
			synctest.Wait()
		}
		time.Sleep(2 * settle)
		synctest.Wait()
		if n := warnings.Load(); n > 0 {
			t.Errorf("after %v: %d warnings", 2*settle, n)
		}
		time.Sleep(2 * rediscover)
		synctest.Wait()
		if warnings.Load() == 0 {
			t.Errorf("after %v: no warning", 2*rediscover)
		}
	})
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// Events are not followed: they are many. Other kinds may have that name.
func TestCollectableKinds(t *testing.T) {
	for gvr, want := range map[schema.GroupVersionResource]bool{
		{Version: "v1", Resource: "pods"}:                             true,
		{Version: "v1", Resource: "events"}:                           false,
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}:   false,
		{Group: "example.com", Version: "v1", Resource: "events"}:     true,
		{Group: "example.com", Version: "v1", Resource: "concerts"}:   true,
		{Group: "events.k8s.io", Version: "v1", Resource: "concerts"}: true,
	} {
		r := discovery.Resource{Verbs: []string{"list", "watch", "delete"},
			Mapping: scheme.Mapping{Kind: gvr.GroupVersion().WithKind("Event"), Resource: gvr.Resource, Scope: scheme.Namespaced}}
		if collectable(r) != want {
			t.Errorf("%v: %v", gvr, !want)
		}
		r.Verbs = []string{"list", "delete"}
		if collectable(r) {
			t.Errorf("%v cannot be watched", gvr)
		}
	}
}

// An owner that must not go before its dependents waits for kinds that were never
// discovered, as long as for a resource that cannot be watched.
func TestOwnersWaitForUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		down := errors.New("example.com/v1: the server behind it cannot be asked")
		for name, tt := range map[string]struct {
			answered bool // a discovery
			orphan   bool
			waits    error
			goes     bool // after a minute
		}{
			"in the foreground, without an answer":   {false, false, errNotDiscovered, true},
			"in the foreground":                      {true, false, down, true},
			"and dependents stay, without an answer": {false, true, errNotDiscovered, false},
			"and dependents stay":                    {true, true, down, true},
		} {
			c.discoveries = newDiscoveries()
			if tt.answered {
				c.discoveries.end(time.Now(), nil, map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: down})
			}
			o := thing(types.UID(name))
			o.orphan = tt.orphan
			if _, err := c.awaitGraph(t.Context(), o); !errors.Is(err, errGraphBehind) || !errors.Is(err, tt.waits) {
				t.Errorf("%s: kinds are unknown, and the wait ended with %v", name, err)
			}
			time.Sleep(brokenPatience + time.Second)
			if m, err := c.awaitGraph(t.Context(), o); (err == nil) != tt.goes || err == nil && m.unknown == nil {
				t.Errorf("%s: a minute later: %v", name, err)
			}
			c.discoveries.end(time.Now(), nil, nil)
			if m, err := c.awaitGraph(t.Context(), o); err != nil || m.unknown != nil {
				t.Errorf("%s: all kinds are known: %v", name, err)
			}
		}
	})
}
