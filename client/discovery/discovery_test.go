package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// server answers discovery in memory.
type server struct {
	mu         sync.Mutex
	aggregated bool
	etags      bool
	down       bool
	widgets    bool // example.com/v1 is served
	// widgetsDown: it is listed and cannot be asked.
	widgetsDown bool
	instead     map[string]answer // by path, in place of the document
	hangs       map[string]hang   // by path
	requests    []string
}

// hang says what of an answer never comes.
type hang int

const (
	nothing hang = iota
	wholly
	afterHeader
	retryLater // 503, to be asked again in a minute, for ever
)

// endless is a body that never comes.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }
func (endless) Close() error               { return nil }

// answer is one that is no document.
type answer struct {
	code        int
	contentType string
	body        string
}

func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = nil
	return n
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	hangs := s.hangs[r.URL.Path]
	s.mu.Unlock()
	resp := &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}}, Body: endless{r.Context()}, Request: r}
	switch hangs {
	case wholly:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case afterHeader:
		return resp, nil
	case retryLater:
		resp.StatusCode, resp.Body = http.StatusServiceUnavailable, http.NoBody
		resp.Header.Set("Retry-After", "60")
		return resp, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.URL.Path)
	if s.down {
		return nil, errors.New("connection refused")
	}
	if a, ok := s.instead[r.URL.Path]; ok {
		return &http.Response{StatusCode: a.code, Status: http.StatusText(a.code), Header: http.Header{"Content-Type": {a.contentType}},
			Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
	}
	answer := func(code int, contentType string, body any) (*http.Response, error) {
		data, err := json.Marshal(body)
		etag := `"1"`
		if s.widgets {
			etag = `"2"`
		}
		if s.etags && r.Header.Get("If-None-Match") == etag {
			code, data = http.StatusNotModified, nil
		}
		header := http.Header{"Content-Type": {contentType}}
		if s.etags {
			header.Set("ETag", etag)
		}
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: header, Body: io.NopCloser(strings.NewReader(string(data))), Request: r}, err
	}
	if s.aggregated && strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
		return answer(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", s.aggregate(r.URL.Path))
	}
	body, ok := s.documents()[r.URL.Path]
	if !ok {
		return answer(404, "text/plain", "404 page not found")
	}
	return answer(200, "application/json", body)
}

type object = map[string]any
type list = []any

func (s *server) documents() object {
	groups := list{
		object{"name": "apps", "versions": list{object{"version": "v1"}}, "preferredVersion": object{"version": "v1"}},
		object{"name": "autoscaling", "versions": list{object{"version": "v1"}, object{"version": "v2"}}, "preferredVersion": object{"version": "v2"}},
		object{"name": "metrics.k8s.io", "versions": list{object{"version": "v1beta1"}}, "preferredVersion": object{"version": "v1beta1"}},
		object{"name": "broken.example.com", "versions": list{object{"version": "v1"}}, "preferredVersion": object{"version": "v1"}},
	}
	verbs := list{"get", "list"}
	d := object{
		"/api": object{"kind": "APIVersions", "versions": list{"v1"}},
		"/api/v1": resources(
			object{"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": true, "verbs": verbs, "shortNames": list{"po"}, "categories": list{"all"}},
			object{"name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": verbs},
			object{"name": "nodes", "kind": "Node", "singularName": "node", "namespaced": false, "verbs": verbs, "shortNames": list{"no"}}),
		"/apis/apps/v1": resources(
			object{"name": "deployments", "kind": "Deployment", "singularName": "deployment", "namespaced": true, "verbs": verbs, "shortNames": list{"deploy"}}),
		"/apis/autoscaling/v1": resources(
			object{"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true, "verbs": verbs, "shortNames": list{"hpa"}}),
		"/apis/autoscaling/v2": resources(
			object{"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true, "verbs": verbs, "shortNames": list{"hpa"}}),
		"/apis/metrics.k8s.io/v1beta1": resources(
			object{"name": "pods", "kind": "PodMetrics", "namespaced": true, "verbs": verbs}),
	}
	if s.widgets {
		groups = append(groups, object{"name": "example.com", "versions": list{object{"version": "v1"}}, "preferredVersion": object{"version": "v1"}})
	}
	if s.widgets && !s.widgetsDown {
		d["/apis/example.com/v1"] = resources(object{"name": "widgets", "kind": "Widget", "singularName": "widget", "namespaced": true, "verbs": verbs})
	}
	d["/apis"] = object{"kind": "APIGroupList", "groups": groups}
	return d
}

func resources(all ...object) object {
	items := list{}
	for _, r := range all {
		items = append(items, r)
	}
	return object{"kind": "APIResourceList", "resources": items}
}

// aggregate makes the aggregated document of the others.
func (s *server) aggregate(path string) object {
	d, items := s.documents(), list{}
	add := func(group string, versions ...string) {
		all := list{}
		for _, version := range versions {
			path := "/apis/" + group + "/" + version
			if group == "" {
				path = "/api/" + version
			}
			v := object{"version": version, "freshness": "Current"}
			if document, ok := d[path].(object); ok {
				v["resources"] = aggregateResources(document["resources"].(list), version)
			} else {
				v["freshness"] = "Stale"
			}
			all = append(all, v)
		}
		items = append(items, object{"metadata": object{"name": group}, "versions": all})
	}
	if path == "/api" {
		add("", "v1")
	} else {
		add("apps", "v1")
		add("autoscaling", "v2", "v1")
		add("metrics.k8s.io", "v1beta1")
		add("broken.example.com", "v1")
		if s.widgets {
			add("example.com", "v1")
		}
	}
	return object{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
}

func aggregateResources(all list, version string) list {
	out, subs := list{}, map[string]list{}
	for _, r := range all {
		if parent, sub, ok := strings.Cut(r.(object)["name"].(string), "/"); ok {
			subs[parent] = append(subs[parent], object{"subresource": sub})
		}
	}
	for _, r := range all {
		r := r.(object)
		name, scope := r["name"].(string), "Cluster"
		if strings.Contains(name, "/") {
			continue
		}
		if r["namespaced"] == true {
			scope = "Namespaced"
		}
		out = append(out, object{"resource": name, "scope": scope, "responseKind": object{"kind": r["kind"], "version": version},
			"singularResource": r["singularName"], "shortNames": r["shortNames"], "categories": r["categories"], "verbs": r["verbs"], "subresources": subs[name]})
	}
	return out
}

func (s *server) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return s }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBothDocumentsSayTheSame(t *testing.T) {
	legacy := &server{}
	want, err := discovery.Fetch(t.Context(), legacy.client(t))
	if err == nil || !strings.Contains(err.Error(), "broken.example.com") {
		t.Errorf("the group that cannot be asked: %v", err)
	}
	if n := legacy.asked(); n != 8 {
		t.Errorf("%d requests", n)
	}
	s := &server{aggregated: true}
	got, err := discovery.Fetch(t.Context(), s.client(t))
	if err == nil || !strings.Contains(err.Error(), "broken.example.com") {
		t.Errorf("aggregated: the group that cannot be asked: %v", err)
	}
	if n := s.asked(); n != 2 {
		t.Errorf("aggregated: %d requests", n)
	}
	if len(got) != 6 || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if r := got[0]; r.Mapping.Kind.Kind != "Pod" || !reflect.DeepEqual(r.Subresources, []string{"log"}) || !r.Supports("get", "list") || r.Supports("watch") {
		t.Errorf("pods: %+v", r)
	}
	if preferred := discovery.Preferred(got); len(preferred) != 5 {
		t.Errorf("%d preferred", len(preferred))
	}
}

// An error says which group versions it is about: a client may have waited for those before.
func TestFailedGroups(t *testing.T) {
	unavailable := answer{http.StatusServiceUnavailable, "text/plain", "not now"}
	for name, tt := range map[string]struct {
		server *server
		want   []schema.GroupVersion
	}{
		"a group":             {&server{}, []schema.GroupVersion{{Group: "broken.example.com", Version: "v1"}}},
		"a group, aggregated": {&server{aggregated: true}, []schema.GroupVersion{{Group: "broken.example.com", Version: "v1"}}},
		"the core group": {&server{aggregated: true, instead: map[string]answer{"/api": unavailable}},
			[]schema.GroupVersion{{Version: "*"}, {Group: "broken.example.com", Version: "v1"}}},
		"all others": {&server{instead: map[string]answer{"/apis": unavailable}}, []schema.GroupVersion{{Group: "*", Version: "*"}}},
		"everything": {&server{down: true}, nil},
	} {
		_, err := discovery.Fetch(t.Context(), tt.server.client(t))
		got := discovery.FailedGroups(fmt.Errorf("wrapped: %w", err))
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
		for _, gv := range tt.want {
			if got[gv] == nil || !errors.Is(err, got[gv]) {
				t.Errorf("%s: %v is missing in %v", name, gv, got)
			}
		}
	}
}

func TestNamesAreThoseOfKubectl(t *testing.T) {
	s := &server{aggregated: true, widgets: true}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	for name, want := range map[string]string{
		"pods":                                "/v1 pods",
		"pod":                                 "/v1 pods",
		"Pod":                                 "/v1 pods",
		"PO":                                  "/v1 pods",
		"no":                                  "/v1 nodes",
		"pods.metrics.k8s.io":                 "metrics.k8s.io/v1beta1 pods",
		"pods.metrics":                        "metrics.k8s.io/v1beta1 pods",
		"podmetrics":                          "metrics.k8s.io/v1beta1 pods",
		"pods.v1.":                            "/v1 pods",
		"deploy":                              "apps/v1 deployments",
		"Deployment.v1.apps":                  "apps/v1 deployments",
		"hpa":                                 "autoscaling/v2 horizontalpodautoscalers",
		"hpa.v1.autoscaling":                  "autoscaling/v1 horizontalpodautoscalers",
		"widgets.example.com":                 "example.com/v1 widgets",
		"widgets.v1.example.com":              "example.com/v1 widgets",
		"nothing":                             "",
		"":                                    "",
		"deployments.v2.apps":                 "",
		"horizontalpodautoscalers.v3.example": "",
	} {
		r, err := m.ByName(t.Context(), name)
		if want == "" {
			if !meta.IsNoMatchError(err) {
				t.Errorf("%q: %+v, %v", name, r, err)
			}
			continue
		}
		gvr := r.GroupVersionResource()
		if got := gvr.Group + "/" + gvr.Version + " " + gvr.Resource; err != nil || got != want {
			t.Errorf("%q: got %q, want %q, %v", name, got, want, err)
		}
	}
}

// The error for a name that no resource has is one line, and proposes those that are called
// about so, or have the name in another group.
func TestUnknownNamesSayWhatIsNear(t *testing.T) {
	s := &server{aggregated: true, widgets: true}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	for name, want := range map[string]string{
		"deploymets":          "(is it deployments.apps?)",
		"Deployment.apps.k8s": "(is it deployments.apps?)",
		"deployments.v2.apps": "(is it deployments.apps?)",
		"pod.metrix.k8s.io":   "(is it pods, or pods.metrics.k8s.io?)",
		"nodse":               "(is it nodes?)",
		"nothing":             "",
		"":                    "",
	} {
		_, err := m.ByName(t.Context(), name)
		first, _, _ := strings.Cut(fmt.Sprint(err), "; some groups")
		if want = strings.TrimSpace(fmt.Sprintf("the server serves no resource called %q %s", name, want)); !meta.IsNoMatchError(err) || first != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestKinds(t *testing.T) {
	s := &server{aggregated: true}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	hpa := schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	for want, versions := range map[string][]string{"v2": nil, "v1": {"v3", "v1"}} {
		if r, err := m.ByKind(t.Context(), hpa, versions...); err != nil || r.Mapping.Kind.Version != want {
			t.Errorf("%v: %+v, %v", versions, r, err)
		}
	}
	if _, err := m.ByKind(t.Context(), hpa, "v3"); !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "broken.example.com") {
		t.Errorf("an unknown version: %v", err)
	}
	r, err := m.ByResource(t.Context(), schema.GroupVersionResource{Group: "apps", Resource: "deployments"})
	if err != nil || r.Mapping.Kind.Kind != "Deployment" {
		t.Errorf("by resource: %+v, %v", r, err)
	}
	if _, err := m.ByResource(t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v9", Resource: "deployments"}); !meta.IsNoMatchError(err) {
		t.Errorf("by resource in an unknown version: %v", err)
	}
}

func TestMapperAsksAsLittleAsItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{aggregated: true}
		m := discovery.NewMapper(s.client(t), discovery.Options{MaxAge: time.Hour, MinInterval: time.Second})
		ctx := t.Context()
		var group sync.WaitGroup
		for range 20 { // one asks for all
			group.Go(func() {
				if _, err := m.ByName(ctx, "po"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := s.asked(); n != 2 {
			t.Errorf("%d requests for the first answers", n)
		}
		// A kind that comes is found.
		if _, err := m.ByName(ctx, "widgets"); !meta.IsNoMatchError(err) {
			t.Errorf("got %v", err)
		}
		s.set(func(s *server) { s.widgets = true })
		if _, err := m.ByName(ctx, "widgets"); err != nil {
			t.Error(err)
		}
		s.asked()
		// Names that do not exist are asked for once a second.
		time.Sleep(time.Minute)
		for range 100 {
			if _, err := m.ByName(ctx, "nothing"); !meta.IsNoMatchError(err) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.asked(); n > 2*(5+10) {
			t.Errorf("%d requests for a name that does not exist, in 10 s", n)
		}
		// What was invalidated, or is old, is asked for again.
		time.Sleep(time.Minute)
		s.set(func(s *server) { s.widgets = false })
		if _, err := m.ByName(ctx, "widgets"); err != nil {
			t.Error(err)
		}
		m.Invalidate()
		if _, err := m.ByName(ctx, "widgets"); !meta.IsNoMatchError(err) {
			t.Errorf("after Invalidate: %v", err)
		}
		s.asked()
		time.Sleep(2 * time.Hour)
		if _, err := m.ByName(ctx, "po"); err != nil || s.asked() != 2 {
			t.Errorf("after MaxAge: %v", err)
		}
	})
}

func TestUnchangedDocumentsAreNotSentAgain(t *testing.T) {
	s := &server{aggregated: true, etags: true}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	first, err := m.All(t.Context())
	if len(first) == 0 || err == nil {
		t.Fatal(len(first), err)
	}
	m.Invalidate()
	second, _ := m.All(t.Context())
	if n := s.asked(); n != 4 || !reflect.DeepEqual(first, second) {
		t.Errorf("%d requests, %d resources and then %d", n, len(first), len(second))
	}
	s.set(func(s *server) { s.widgets = true })
	m.Invalidate()
	if _, err := m.ByName(t.Context(), "widgets"); err != nil {
		t.Error(err)
	}
}

// What is known is used while the server cannot be reached.
func TestServerThatCannotBeReached(t *testing.T) {
	s := &server{aggregated: true, down: true}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	if _, err := m.ByName(t.Context(), "po"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("before anything is known: %v", err)
	}
	s.set(func(s *server) { s.down = false })
	if _, err := m.ByName(t.Context(), "po"); err != nil {
		t.Error(err)
	}
	s.set(func(s *server) { s.down = true })
	m.Invalidate()
	if _, err := m.ByName(t.Context(), "po"); err != nil {
		t.Errorf("a known name: %v", err)
	}
	if _, err := m.ByName(t.Context(), "nothing"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("an unknown name: %v", err)
	}
	s.set(func(s *server) { s.down, s.widgets = false, true })
	if _, err := m.ByName(t.Context(), "widgets"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A group that cannot be asked may have what is asked for: no error says that it has not.
func TestGroupThatCannotBeAsked(t *testing.T) {
	for _, aggregated := range []bool{false, true} {
		m := discovery.NewMapper((&server{aggregated: aggregated}).client(t), discovery.Options{})
		ctx, group := t.Context(), "broken.example.com"
		_, byKind := m.ByKind(ctx, schema.GroupKind{Group: group, Kind: "Widget"})
		_, byVersion := m.ByKind(ctx, schema.GroupKind{Group: group, Kind: "Widget"}, "v1")
		_, byResource := m.ByResource(ctx, schema.GroupVersionResource{Group: group, Resource: "widgets"})
		_, byName := m.ByName(ctx, "widgets."+group)
		_, byPrefix := m.ByName(ctx, "widgets.broken")
		_, byFullName := m.ByName(ctx, "widgets.v1."+group)
		for what, err := range map[string]error{"kind": byKind, "kind and version": byVersion, "resource": byResource,
			"name": byName, "prefix": byPrefix, "full name": byFullName} {
			if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), group) {
				t.Errorf("aggregated %v: by %s: %v", aggregated, what, err)
			}
		}
		if _, err := m.ByKind(ctx, schema.GroupKind{Group: group, Kind: "Widget"}, "v2"); !meta.IsNoMatchError(err) {
			t.Errorf("aggregated %v: a version that the server does not name: %v", aggregated, err)
		}
		if _, err := m.ByKind(ctx, schema.GroupKind{Group: "example.com", Kind: "Widget"}); !meta.IsNoMatchError(err) {
			t.Errorf("aggregated %v: another group: %v", aggregated, err)
		}
	}
}

// A document that never comes does not keep the others from being known, and a group version
// whose document came before is still known.
func TestAnswerThatNeverComes(t *testing.T) {
	deployments, pods := schema.GroupVersionResource{Group: "apps", Resource: "deployments"}, schema.GroupVersionResource{Resource: "pods"}
	for how, hangs := range map[string]hang{"wholly": wholly, "after its header": afterHeader, "503 with Retry-After": retryLater} {
		for path, found := range map[string]schema.GroupVersionResource{"/apis/autoscaling/v2": deployments, "/api/v1": deployments, "/api": deployments, "/apis": pods} {
			t.Run(how+" at "+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{}
					m := discovery.NewMapper(s.client(t), discovery.Options{})
					before, _ := m.All(t.Context())
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					s.set(func(s *server) { s.hangs = map[string]hang{path: hangs} })
					for _, m := range []*discovery.Mapper{m, discovery.NewMapper(s.client(t), discovery.Options{})} {
						m.Invalidate()
						all, err := m.All(ctx)
						if err == nil || !strings.Contains(err.Error(), path) || len(all) == 0 {
							t.Errorf("%d resources, %v", len(all), err)
						}
						if _, err := m.ByResource(ctx, found); err != nil {
							t.Errorf("%s: %v", found.Resource, err)
						}
					}
					if all, _ := m.All(ctx); !reflect.DeepEqual(all, before) {
						t.Errorf("%d resources, before %d", len(all), len(before))
					}
				})
			})
		}
	}
}

// The context of the caller ends the question before.
func TestQuestionEndsWithItsContext(t *testing.T) {
	for _, path := range []string{"/api", "/apis", "/apis/apps/v1"} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{hangs: map[string]hang{path: wholly}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			found, err := discovery.Fetch(ctx, s.client(t))
			if !errors.Is(err, context.DeadlineExceeded) || len(found) > 0 || time.Since(begun) > time.Second {
				t.Errorf("%s: after %v: %d resources, %v", path, time.Since(begun), len(found), err)
			}
		})
	}
}

// What a group served is still known while it cannot be asked.
func TestGroupThatCannotBeAskedAnyMore(t *testing.T) {
	for _, aggregated := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{aggregated: aggregated, widgets: true}
			m := discovery.NewMapper(s.client(t), discovery.Options{})
			widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
			before, _ := m.All(t.Context())
			s.set(func(s *server) { s.widgetsDown = true })
			for range 3 { // they are kept for as long as the group is listed
				m.Invalidate()
				if all, err := m.All(t.Context()); !reflect.DeepEqual(all, before) || err == nil || !strings.Contains(err.Error(), "example.com/v1") {
					t.Errorf("aggregated %v: %d resources, before %d; %v", aggregated, len(all), len(before), err)
				}
				if r, err := m.ByKind(t.Context(), widget); err != nil || r.Mapping.Resource != "widgets" || !r.Preferred {
					t.Errorf("aggregated %v: %+v, %v", aggregated, r, err)
				}
				time.Sleep(time.Minute)
			}
			s.set(func(s *server) { s.widgets = false })
			m.Invalidate()
			if r, err := m.ByKind(t.Context(), widget); !meta.IsNoMatchError(err) {
				t.Errorf("aggregated %v: after the group has gone: %+v, %v", aggregated, r, err)
			}
		})
	}
}

// notDocuments are answers in place of a document. The first are those of servers without
// the core group: one made of k8s.io/apiserver alone, and one that forbids it.
func notDocuments() map[string]answer {
	status := func(code int, reason string) answer {
		return answer{code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"no"}`, code, reason)}
	}
	return map[string]answer{
		"404":                   status(404, "NotFound"),
		"403":                   status(403, "Forbidden"),
		"404 page":              {404, "text/plain", "404 page not found\n"},
		"500":                   status(500, "InternalError"),
		"a page of a proxy":     {200, "text/html", "<html>maintenance</html>"},
		"an empty object":       {200, "application/json", "{}"},
		"an empty object as v2": {200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "{}"},
		"an object cut in two":  {200, "application/json", `{"kind":"API`},
		"no items":              {200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{"kind":"APIGroupDiscoveryList"}`},
		"no versions":           {200, "application/json", `{"kind":"APIVersions"}`},
		"no groups":             {200, "application/json", `{"kind":"APIGroupList","apiVersion":"v1"}`},
		"no resources":          {200, "application/json", `{"kind":"APIResourceList","groupVersion":"apps/v1"}`},
		"those of another":      {200, "application/json", `{"kind":"APIResourceList","groupVersion":"other/v1","resources":[{"name":"others","kind":"Other"}]}`},
	}
}

// A document that cannot be had is left out and named; what the other one has is found.
// What it has may be served nevertheless: no error says that it is not.
func TestRootThatCannotBeAsked(t *testing.T) {
	core, other := schema.GroupVersionResource{Resource: "pods"}, schema.GroupVersionResource{Group: "apps", Resource: "deployments"}
	for name, instead := range notDocuments() {
		for _, aggregated := range []bool{false, true} {
			for path, resources := range map[string]struct{ found, lost schema.GroupVersionResource }{"/api": {other, core}, "/apis": {core, other}} {
				s := &server{aggregated: aggregated, instead: map[string]answer{path: instead}}
				found, err := discovery.Fetch(t.Context(), s.client(t))
				if err == nil || !strings.Contains(err.Error(), "discovery: ") || len(found) == 0 {
					t.Errorf("%s at %s, aggregated %v: %d resources, %v", name, path, aggregated, len(found), err)
				}
				m := discovery.NewMapper(s.client(t), discovery.Options{})
				if r, err := m.ByResource(t.Context(), resources.found); err != nil || r.Mapping.Resource != resources.found.Resource {
					t.Errorf("%s at %s, aggregated %v: %+v, %v", name, path, aggregated, r, err)
				}
				for _, version := range []string{"", "v1"} {
					if _, err := m.ByResource(t.Context(), resources.lost.GroupResource().WithVersion(version)); err == nil || meta.IsNoMatchError(err) {
						t.Errorf("%s at %s, aggregated %v: %v", name, path, aggregated, err)
					}
				}
				if _, err := m.ByKind(t.Context(), schema.GroupKind{Group: resources.found.Group, Kind: "Nothing"}); !meta.IsNoMatchError(err) {
					t.Errorf("%s at %s, aggregated %v: a kind of the other document: %v", name, path, aggregated, err)
				}
				if _, err := m.ByName(t.Context(), resources.lost.Resource+".v1."+resources.lost.Group); err == nil || meta.IsNoMatchError(err) {
					t.Errorf("%s at %s, aggregated %v: by name: %v", name, path, aggregated, err)
				}
			}
		}
	}
}

// Servers that are written by hand may leave the kind out.
func TestResourcesWithoutAKind(t *testing.T) {
	for document, known := range map[string]bool{
		`{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`: true,
		`{"resources":[]}`:                 true,
		`{"groupVersion":"v1"}`:            false,
		`{"kind":"Status","resources":[]}`: false,
	} {
		s := &server{instead: map[string]answer{"/api/v1": {200, "application/json", document}}}
		_, err := discovery.Fetch(t.Context(), s.client(t)) // an error names the group that the server lacks
		if err == nil || strings.Contains(err.Error(), "/api/v1") == known {
			t.Errorf("%s: %v", document, err)
		}
	}
}

// Nothing is known if neither document can be had.
func TestNoRootCanBeAsked(t *testing.T) {
	for name, instead := range notDocuments() {
		s := &server{instead: map[string]answer{"/api": instead, "/apis": instead}}
		if found, err := discovery.Fetch(t.Context(), s.client(t)); len(found) > 0 || err == nil {
			t.Errorf("%s: %d resources, %v", name, len(found), err)
		}
	}
}

// What a document had is still known while it cannot be had.
func TestRootThatCannotBeAskedAnyMore(t *testing.T) {
	for name, instead := range notDocuments() {
		for _, path := range []string{"/api", "/apis"} {
			s := &server{aggregated: true, etags: true}
			m := discovery.NewMapper(s.client(t), discovery.Options{})
			before, _ := m.All(t.Context())
			s.set(func(s *server) { s.instead = map[string]answer{path: instead} })
			m.Invalidate()
			during, err := m.All(t.Context())
			if !reflect.DeepEqual(during, before) || err == nil || !strings.Contains(err.Error(), "discovery: ") {
				t.Errorf("%s at %s: %d resources, before %d; %v", name, path, len(during), len(before), err)
			}
			s.set(func(s *server) { s.instead = nil })
			m.Invalidate()
			if after, err := m.All(t.Context()); !reflect.DeepEqual(after, before) || strings.Contains(err.Error(), "discovery: ") {
				t.Errorf("%s at %s: afterwards: %d resources, before %d; %v", name, path, len(after), len(before), err)
			}
		}
	}
}

// A group version whose server answers something else than a list of resources has
// resources that are not known. It is not empty.
func TestGroupVersionThatIsNoDocument(t *testing.T) {
	for name, instead := range notDocuments() {
		s := &server{instead: map[string]answer{"/apis/apps/v1": instead}}
		found, err := discovery.Fetch(t.Context(), s.client(t))
		if err == nil || strings.Count(err.Error(), "\n") != 1 || len(found) != 5 { // broken.example.com/v1 as well
			t.Errorf("%s: %d resources, %v", name, len(found), err)
		}
		if _, err := discovery.NewMapper(s.client(t), discovery.Options{}).ByName(t.Context(), "deployments.apps"); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each resource is found once, whichever version of its group serves it.
func TestResourcesOfOtherVersions(t *testing.T) {
	verbs := list{"list", "delete"}
	gadgets := resources(object{"name": "gadgets", "kind": "Gadget", "namespaced": true, "verbs": verbs},
		object{"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true, "verbs": verbs})
	body, err := json.Marshal(gadgets)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{instead: map[string]answer{"/apis/autoscaling/v1": {200, "application/json", string(body)}}}
	found, _ := discovery.Fetch(t.Context(), s.client(t))
	versions := map[string][]string{}
	for _, r := range discovery.Preferred(found) {
		versions[r.Mapping.Resource+"."+r.Mapping.Kind.Group] = append(versions[r.Mapping.Resource+"."+r.Mapping.Kind.Group], r.Mapping.Kind.Version)
	}
	for name, version := range map[string]string{"gadgets.autoscaling": "v1", "horizontalpodautoscalers.autoscaling": "v2", "pods.": "v1"} {
		if !reflect.DeepEqual(versions[name], []string{version}) {
			t.Errorf("%s: versions %v, want %s", name, versions[name], version)
		}
	}
	m := discovery.NewMapper(s.client(t), discovery.Options{})
	if r, err := m.ByKind(t.Context(), schema.GroupKind{Group: "autoscaling", Kind: "Gadget"}); err != nil || r.Mapping.Kind.Version != "v1" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whatever a document says twice is asked for and found once. A resource needs a name and a kind, and a
// version that is only preferred is not served.
func TestDocumentsThatRepeatThemselves(t *testing.T) {
	verbs := list{"list"}
	widget := object{"name": "widgets", "kind": "Widget", "namespaced": true, "verbs": verbs}
	odd := resources(widget, widget, object{"name": "", "kind": "Nameless", "verbs": verbs}, object{"name": "kindless", "verbs": verbs})
	version := func(name string) object { return object{"version": name} }
	group := object{"name": "example.com", "versions": list{version("v1"), version("v1"), version("v2")}, "preferredVersion": version("v3")}
	found := object{"version": "v1", "resources": append(aggregateResources(odd["resources"].(list), "v1"), object{"resource": "widgets", "responseKind": object{"kind": "Widget"}})}
	aggregatedGroup := object{"metadata": object{"name": "example.com"}, "versions": list{found, found, object{"version": "v2", "resources": aggregateResources(list{widget}, "v2")}}}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for name, documents := range map[string]map[string]object{
		"each version": {"/apis": {"kind": "APIGroupList", "groups": list{group, group}}, "/apis/example.com/v1": odd, "/apis/example.com/v2": resources(widget)},
		"aggregated":   {"/apis": {"kind": "APIGroupDiscoveryList", "items": list{aggregatedGroup, aggregatedGroup}}},
	} {
		s := &server{instead: map[string]answer{"/api": {200, "application/json", `{"kind":"APIVersions","versions":[]}`}}}
		for path, document := range documents {
			body, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			contentType := "application/json"
			if name == "aggregated" {
				contentType = aggregated
			}
			s.instead[path] = answer{200, contentType, string(body)}
		}
		all, err := discovery.Fetch(t.Context(), s.client(t))
		got := ""
		for _, r := range all {
			got += fmt.Sprintf("%s/%s %v ", r.Mapping.Kind.Version, r.Mapping.Resource, r.Preferred)
		}
		if asked := s.asked(); err != nil || got != "v1/widgets true v2/widgets false " || asked != 1+len(documents) {
			t.Errorf("%s: found %s in %d requests, %v", name, got, asked, err)
		}
	}
}
