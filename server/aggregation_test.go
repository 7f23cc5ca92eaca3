package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// flunders is an aggregated server. Its handler may be replaced while it runs.
type flunders struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.HandlerFunc
}

const flundersPath = "/apis/wardle.example.com/v1alpha1"

// newFlunders starts one that believes proxies certified by an authority in PEM; nil: any
// client.
func newFlunders(t *testing.T, proxyCA []byte) *flunders {
	t.Helper()
	f := &flunders{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.EnableHTTP2 = true
	if proxyCA != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(proxyCA)
		f.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

func (f *flunders) answer(handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handler = handler
}

func (f *flunders) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case flundersPath:
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "wardle.example.com/v1alpha1",
			APIResources: []metav1.APIResource{
				{Name: "flunders", SingularName: "flunder", Namespaced: true, Kind: "Flunder", Verbs: metav1.Verbs{"get", "list", "watch", "create", "delete"}, ShortNames: []string{"fl"}},
				{Name: "flunders/status", Namespaced: true, Kind: "Flunder", Verbs: metav1.Verbs{"get"}},
			},
		})
		return
	case "/openapi/v3":
		fmt.Fprint(w, `{"paths":{"apis/wardle.example.com/v1alpha1":{"serverRelativeURL":"/openapi/v3/apis/wardle.example.com/v1alpha1?hash=ABC"}}}`)
		return
	case "/openapi/v3" + flundersPath:
		fmt.Fprint(w, `{"openapi":"3.0.0","info":{"title":"flunders"}}`)
		return
	case "/openapi/v2":
		fmt.Fprint(w, `{"swagger":"2.0","info":{"title":"x","version":"1"},"paths":{"`+flundersPath+`/flunders":{"get":{"operationId":"listFlunders","responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Flunder"}}}}},
			"/apis/other/v1/others":{"get":{"responses":{"200":{"description":"OK"}}}}},"definitions":{"Flunder":{"type":"object","description":"a flunder"},"Unused":{"type":"object"}}}`)
		return
	}
	f.mu.Lock()
	handler := f.handler
	f.mu.Unlock()
	if handler == nil {
		handler = http.NotFound
	}
	handler(w, r)
}

func (f *flunders) caBundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

// aggregation is a server, with an aggregated server behind an APIService.
type aggregation struct {
	*running
	t      *testing.T
	api    *client.Client
	http   *http.Client
	config *rest.Config
	f      *flunders
}

// newAggregation waits until the aggregated server is available.
func newAggregation(t *testing.T) *aggregation {
	t.Helper()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	a := &aggregation{running: s, t: t, api: s.client(t)}
	published := testwait.Stable(t, "the authorities are published", func() (*corev1.ConfigMap, bool) {
		published, err := client.For[*corev1.ConfigMap](a.api).Namespace("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		return published, err == nil
	})
	for key, want := range map[string]string{
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`, "requestheader-allowed-names": `["front-proxy-client"]`,
	} {
		if published.Data[key] != want {
			t.Errorf("%s: %s", key, published.Data[key])
		}
	}
	a.f = newFlunders(t, []byte(published.Data["requestheader-client-ca-file"]))
	a.config, a.http = a.as("ada", "system:masters")
	a.createService(a.f.Listener.Addr().String())
	a.register(nil)
	a.awaitCondition("Passed")
	return a
}

// TestAuthoritiesStayPublished: the ConfigMap is made again when it was deleted, and what is missing in it is added, at once:
// a component that starts at that moment must find it.
func TestAuthoritiesStayPublished(t *testing.T) {
	ctx := deadline(t)
	maps := client.For[*corev1.ConfigMap](start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory}).client(t)).Namespace("kube-system")
	const name = "extension-apiserver-authentication"
	before, err := maps.Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	again := func(what string) {
		t.Helper()
		testwait.Stable(t, what, func() (*corev1.ConfigMap, bool) {
			now, err := maps.Get(ctx, name, metav1.GetOptions{})
			return now, err == nil && now.Data["client-ca-file"] == before.Data["client-ca-file"]
		})
	}
	for range 5 { // each would take a minute, if a clock alone made it again
		must(t, maps.Delete(ctx, name, metav1.DeleteOptions{}))
		again("the deleted ConfigMap is made again")
	}
	_, err = maps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"client-ca-file":null}}`), metav1.PatchOptions{})
	must(t, err)
	again("the authority is published again")
	full := 1 << 20 // what a ConfigMap may have
	for _, value := range before.Data {
		full -= len(value)
	}
	_, err = maps.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"client-ca-file":null,"full":%q}}`, strings.Repeat("x", full+1)), metav1.PatchOptions{})
	must(t, err)
	again("the authority is published in place of what leaves no room for it")
}

func (a *aggregation) as(name string, groups ...string) (*rest.Config, *http.Client) {
	a.t.Helper()
	config, err := a.UserConfig(name, groups...)
	must(a.t, err)
	c, err := rest.HTTPClientFor(config)
	must(a.t, err)
	a.t.Cleanup(c.CloseIdleConnections)
	return config, c
}

// ownNamespace and ownService name what may have an endpoint on the loopback, beside default/kubernetes.
const ownNamespace, ownService = metav1.NamespaceSystem, "metrics-server"

// createService makes the Service with an endpoint, or moves its endpoint.
func (a *aggregation) createService(address string) {
	a.t.Helper()
	services, slices := client.For[*corev1.Service](a.api).Namespace(ownNamespace), client.For[*discoveryv1.EndpointSlice](a.api).Namespace(ownNamespace)
	_, _, err := services.CreateOrUpdate(a.t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: ownService}}, func(svc *corev1.Service) error {
		svc.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP}}
		return nil
	})
	must(a.t, err)
	_, _, err = slices.CreateOrUpdate(a.t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: ownService}}, func(slice *discoveryv1.EndpointSlice) error {
		made := endpointsAt(ownService, address)
		slice.Labels, slice.AddressType, slice.Ports, slice.Endpoints = made.Labels, made.AddressType, made.Ports, made.Endpoints
		return nil
	})
	must(a.t, err)
}

// endpointsAt returns the EndpointSlice of a Service whose port is called https.
func endpointsAt(service, address string) *discoveryv1.EndpointSlice {
	at := netip.MustParseAddrPort(address)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(at.Port())), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
}

// register makes the APIService of the Service. change may be nil.
func (a *aggregation) register(change func(*apiregistrationv1.APIService)) {
	a.t.Helper()
	obj := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.wardle.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "wardle.example.com", Version: "v1alpha1", GroupPriorityMinimum: 1000, VersionPriority: 15,
			Service: &apiregistrationv1.ServiceReference{Namespace: ownNamespace, Name: ownService},
		},
	}
	if a.f != nil {
		// The certificate of httptest is for example.com, not for a Service.
		obj.Spec.InsecureSkipTLSVerify = true
	}
	if change != nil {
		change(obj)
	}
	_, err := client.For[*apiregistrationv1.APIService](a.api).Create(a.t.Context(), obj, metav1.CreateOptions{})
	must(a.t, err)
}

func (a *aggregation) awaitCondition(reason string) apiregistrationv1.APIServiceCondition {
	a.t.Helper()
	return testwait.Stable(a.t, "the APIService becomes "+reason, func() (last apiregistrationv1.APIServiceCondition, is bool) {
		obj, err := client.For[*apiregistrationv1.APIService](a.api).Get(a.t.Context(), "v1alpha1.wardle.example.com", metav1.GetOptions{})
		if err != nil || len(obj.Status.Conditions) == 0 {
			return last, false
		}
		return obj.Status.Conditions[0], obj.Status.Conditions[0].Reason == reason
	})
}

// do sends a request as ada and returns the code and the body.
func (a *aggregation) do(method, path, body string, headers ...string) (int, string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(deadline(a.t), method, a.URL()+path, strings.NewReader(body))
	must(a.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	response, err := a.http.Do(r)
	must(a.t, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	must(a.t, err)
	return response.StatusCode, string(content)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAggregatedRequests: requests reach the aggregated server with the user, and without
// what has authenticated it.
func TestAggregatedRequests(t *testing.T) {
	a := newAggregation(t)
	seen := make(chan *http.Request, 1)
	a.f.answer(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Audit-Id", "not-this")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(append([]byte("got "), body...))
	})
	code, body := a.do(http.MethodPost, flundersPath+"/namespaces/default/flunders?dryRun=All", "a flunder",
		"Authorization: Bearer secret", "X-Remote-User: eve", "X-Remote-Extra-Team: evil", "X-Remote-Group: evil",
		"Impersonate-User: grace", "Impersonate-Group: system:masters", "Impersonate-Extra-Example.com%2fteam: red", "X-Forwarded-For: 10.1.2.3",
		"Cookie: __Host-levelwire-ui-6443=secret; theme=dark", "Levelwire-Ui: key")
	if code != http.StatusCreated || body != "got a flunder" {
		t.Fatalf("%d %s", code, body)
	}
	r := <-seen
	for name, want := range map[string]string{
		"X-Remote-User": "grace", "X-Remote-Group": "system:masters system:authenticated", "X-Remote-Extra-Example.com%2fteam": "red",
		"X-Remote-Extra-Team": "", "Authorization": "", "Impersonate-User": "", "Impersonate-Group": "",
		"Cookie": "theme=dark", "Levelwire-Ui": "", // the session of the page at /ui/ would sign the aggregated server in
	} {
		if got := strings.Join(r.Header.Values(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.URL.RawQuery != "dryRun=All" || r.TLS.PeerCertificates[0].Subject.CommonName != "front-proxy-client" || r.Header.Get("Audit-Id") == "" {
		t.Errorf("%s %s %v", r.URL.RawQuery, r.TLS.PeerCertificates[0].Subject, r.Header)
	}
	if got := r.Header.Get("X-Forwarded-For"); got != "10.1.2.3, 127.0.0.1" {
		t.Errorf("X-Forwarded-For: %q", got)
	}
}

// TestAggregatedAuthorization: this server authorizes first.
func TestAggregatedAuthorization(t *testing.T) {
	a := newAggregation(t)
	a.f.answer(func(http.ResponseWriter, *http.Request) { t.Error("a request came through that is not allowed") })
	_, a.http = a.as("bob")
	if code, body := a.do(http.MethodGet, flundersPath+"/namespaces/default/flunders", ""); code != http.StatusForbidden ||
		!strings.Contains(body, `User \"bob\" cannot list resource \"flunders\" in API group \"wardle.example.com\"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := a.do(http.MethodGet, flundersPath+"/namespaces/../../../api", ""); code == http.StatusOK {
		t.Errorf("a path that leads elsewhere: %d", code)
	}
}

// TestAggregatedDiscovery: what the aggregated server serves is part of the API.
func TestAggregatedDiscovery(t *testing.T) {
	a := newAggregation(t)
	_, body := a.do(http.MethodGet, "/apis", "", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	var groups apidiscoveryv2.APIGroupDiscoveryList
	must(t, json.Unmarshal([]byte(body), &groups))
	found := apidiscoveryv2.APIVersionDiscovery{}
	for _, g := range groups.Items {
		if g.Name == "wardle.example.com" {
			found = g.Versions[0]
		}
	}
	if found.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent || len(found.Resources) != 1 || found.Resources[0].ResponseKind.Kind != "Flunder" ||
		len(found.Resources[0].Subresources) != 1 || found.Resources[0].Scope != apidiscoveryv2.ScopeNamespace {
		t.Errorf("%+v", found)
	}
	for path, want := range map[string]string{
		"/apis": `"wardle.example.com/v1alpha1"`, "/apis/wardle.example.com": `"preferredVersion":{"groupVersion":"wardle.example.com/v1alpha1"`,
		flundersPath: `"flunders"`, "/": `"/apis/wardle.example.com/v1alpha1"`,
		"/openapi/v3": `"/openapi/v3/apis/wardle.example.com/v1alpha1?hash=ABC"`, "/openapi/v3" + flundersPath + "?hash=ABC": `"title":"flunders"`,
		"/openapi/v2": `"` + flundersPath + `/flunders"`,
	} {
		if code, body := a.do(http.MethodGet, path, "", "Accept: application/json"); code != http.StatusOK || !strings.Contains(strings.ReplaceAll(body, ": ", ":"), want) {
			t.Errorf("%s: %d, want %s in %.300s", path, code, want, body)
		}
	}
	if _, body := a.do(http.MethodGet, "/openapi/v2", ""); !strings.Contains(body, "a flunder") || strings.Contains(body, "/apis/other") {
		t.Error("OpenAPI of version 2 has not exactly what the APIService is about")
	}
}

// TestAggregatedWatch: a watch streams, and ends with its client.
func TestAggregatedWatch(t *testing.T) {
	a := newAggregation(t)
	gone := make(chan struct{})
	a.f.answer(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL()+flundersPath+"/flunders?watch=true", nil)
	must(t, err)
	response, err := a.http.Do(r)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "first\n" {
		t.Fatalf("%q %v", line, err)
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(testTimeout):
		t.Error("the aggregated server was not told that the client has gone")
	}
}

// TestAggregatedAnswerBreaksOff: a part of an answer is not taken for the whole.
func TestAggregatedAnswerBreaksOff(t *testing.T) {
	a := newAggregation(t)
	a.f.answer(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := http.NewRequestWithContext(deadline(t), http.MethodGet, a.URL()+flundersPath+"/flunders", nil)
	must(t, err)
	response, err := a.http.Do(r)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	if content, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the client takes %q for the whole", content)
	}
}

// TestAggregatedUpgrade: another protocol passes in both directions.
func TestAggregatedUpgrade(t *testing.T) {
	a := newAggregation(t)
	a.f.answer(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "%s says %s", r.Header.Get("X-Remote-User"), line)
		_ = rw.Flush()
	})
	tlsConfig, err := rest.TLSConfigFor(a.config)
	must(t, err)
	tlsConfig.NextProtos = []string{"http/1.1"}
	raw, err := (&net.Dialer{}).DialContext(deadline(t), "tcp", strings.TrimPrefix(a.URL(), "https://"))
	must(t, err)
	tlsConfig.ServerName = "127.0.0.1"
	conn := tls.Client(raw, tlsConfig)
	defer func() { _ = conn.Close() }()
	must(t, conn.SetDeadline(time.Now().Add(testTimeout)))
	fmt.Fprintf(conn, "POST %s/namespaces/default/flunders/x/exec HTTP/1.1\r\nHost: server\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n", flundersPath)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	must(t, err)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "SPDY/3.1" {
		t.Fatalf("%s %v", response.Status, response.Header)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "ada says hello\n" {
		t.Errorf("%q %v", line, err)
	}
}

// TestAggregatedRedirection is refused: clients would follow it with their credentials.
func TestAggregatedRedirection(t *testing.T) {
	a := newAggregation(t)
	a.f.answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
	})
	if code, body := a.do(http.MethodGet, flundersPath+"/flunders", ""); code != http.StatusBadGateway || !strings.Contains(body, `"kind":"Status"`) {
		t.Errorf("%d %s", code, body)
	}
}

// TestUnavailable: each reason is a condition, clients get a Status, and discovery marks
// what it shows as stale.
func TestUnavailable(t *testing.T) {
	a := newAggregation(t)
	slices := client.For[*discoveryv1.EndpointSlice](a.api).Namespace(ownNamespace)
	slice, err := slices.Get(t.Context(), ownService, metav1.GetOptions{})
	must(t, err)
	notReady := false
	slice.Endpoints[0].Conditions.Ready = &notReady
	_, err = slices.Update(t.Context(), slice, metav1.UpdateOptions{})
	must(t, err)
	a.awaitCondition("MissingEndpoints")
	if code, body := a.do(http.MethodGet, flundersPath+"/flunders", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "no addresses with port name") {
		t.Errorf("%d %s", code, body)
	}
	testwait.Stable(t, "discovery marks what is stale", func() (any, bool) {
		_, body := a.do(http.MethodGet, "/apis", "", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		return body, strings.Contains(body, `"Stale"`) && strings.Contains(body, `"Flunder"`)
	})
	must(t, ignore(slices.Delete(t.Context(), ownService, metav1.DeleteOptions{})))
	a.awaitCondition("EndpointsNotFound")
	must(t, ignore(client.For[*corev1.Service](a.api).Namespace(ownNamespace).Delete(t.Context(), ownService, metav1.DeleteOptions{})))
	a.awaitCondition("ServiceNotFound")
	a.createService("127.0.0.1:1")
	if c := a.awaitCondition("FailedDiscoveryCheck"); !strings.Contains(c.Message, "refused") || c.Status != apiregistrationv1.ConditionFalse {
		t.Errorf("%+v", c)
	}
}

// TestLoopbackOfOthers: who may write EndpointSlices does not lead the server to services on its own loopback,
// also not by a slice that an older server has stored.
func TestLoopbackOfOthers(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	must(t, err)
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return store, nil }})
	a := &aggregation{running: s, t: t, api: s.client(t)}
	local := newFlunders(t, nil)
	local.answer(func(http.ResponseWriter, *http.Request) { t.Error("the server calls its own loopback") })
	slice := endpointsAt("example", local.Listener.Addr().String())
	slices := client.For[*discoveryv1.EndpointSlice](a.api).Namespace("default")
	if _, err := slices.Create(t.Context(), slice.DeepCopy(), metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "may not be in the loopback range (127.0.0.0/8, ::1/128)") {
		t.Errorf("a new slice: %v", err)
	}
	slice.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	slice.Namespace, slice.UID = "default", "00000000-0000-4000-8000-000000000001"
	stored, err := json.Marshal(slice)
	must(t, err)
	_, err = store.Create(t.Context(), "/registry/endpointslices/default/example", stored, 0)
	must(t, err)
	_, err = client.For[*corev1.Service](a.api).Namespace("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "example"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, metav1.CreateOptions{})
	must(t, err)
	if _, err := slices.Get(t.Context(), "example", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	a.register(func(obj *apiregistrationv1.APIService) {
		obj.Spec.InsecureSkipTLSVerify, obj.Spec.Service = true, &apiregistrationv1.ServiceReference{Namespace: "default", Name: "example"}
	})
	a.awaitCondition("MissingEndpoints")
	_, err = client.For[*registrationv1.ValidatingWebhookConfiguration](a.api).Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "example"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "a.example.com", SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{Namespace: "default", Name: "example"}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = configMaps(a.api).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "service default/example has no endpoint that is ready") {
		t.Errorf("a write that the webhook is asked about: %v", err)
	}
}

// TestNotAskedYet: before the first check of an aggregated server has ended, requests fail, but that is
// no failure that the log has for operators.
func TestNotAskedYet(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	log := newLogRecorder()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Logger: log.logger()})
	a := &aggregation{running: s, t: t, api: s.client(t)}
	a.config, a.http = a.as("ada", "system:masters")
	a.createService(silent.Addr().String())
	a.register(nil)
	body := testwait.Stable(t, "the APIService is known", func() (string, bool) {
		code, body := a.do(http.MethodGet, flundersPath+"/flunders", "")
		return body, code == http.StatusServiceUnavailable
	})
	if !strings.Contains(body, "has not been asked yet") {
		t.Skipf("the first check, which ends after seconds, was sooner than the first request: %s", body)
	}
	for _, line := range log.lines.Seen() {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, "has not been asked yet") {
			t.Errorf("logged %s", line)
		}
	}
}

// TestUnavailabilityIsLogged: when it begins, and when it ends, and not for each request that fails in
// between.
func TestUnavailabilityIsLogged(t *testing.T) {
	log := newLogRecorder()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Logger: log.logger()})
	a := &aggregation{running: s, t: t, api: s.client(t), f: newFlunders(t, nil)}
	a.config, a.http = a.as("ada", "system:masters")
	a.createService(a.f.Listener.Addr().String())
	a.register(nil)
	slices := client.For[*discoveryv1.EndpointSlice](a.api).Namespace(ownNamespace)
	setReady := func(ready bool) {
		_, err := slices.UpdateWithRetry(t.Context(), ownService, func(slice *discoveryv1.EndpointSlice) error {
			slice.Endpoints[0].Conditions.Ready = &ready
			return nil
		})
		must(t, err)
	}
	a.awaitCondition("Passed")
	setReady(false)
	a.awaitCondition("MissingEndpoints")
	for range 3 {
		if code, body := a.do(http.MethodGet, flundersPath+"/flunders", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "no addresses with port name") {
			t.Errorf("%d %s", code, body)
		}
	}
	setReady(true)
	a.awaitCondition("Passed")
	a.stop(t) // by then all requests are logged
	began, ended := false, false
	for _, line := range log.lines.Seen() {
		switch {
		case !strings.Contains(line, "v1alpha1.wardle.example.com"):
		case strings.Contains(line, "request failed"):
			t.Errorf("logged %s", line)
		case strings.Contains(line, "level=WARN") && strings.Contains(line, "available=False"):
			began = true
		case strings.Contains(line, "level=INFO") && strings.Contains(line, "available=True"):
			ended = ended || began
		}
	}
	if !began || !ended {
		t.Errorf("the log does not say that the server became unavailable, and available again: %q", log.lines.Seen())
	}
}

func ignore(err error) error { return err }

// TestCABundle: the serving certificate is verified for the name of the Service.
func TestCABundle(t *testing.T) {
	a := newAggregation(t)
	services := client.For[*apiregistrationv1.APIService](a.api)
	must(t, ignore(services.Delete(t.Context(), "v1alpha1.wardle.example.com", metav1.DeleteOptions{})))
	a.register(func(obj *apiregistrationv1.APIService) {
		obj.Spec.InsecureSkipTLSVerify, obj.Spec.CABundle = false, a.f.caBundle()
	})
	if c := a.awaitCondition("FailedDiscoveryCheck"); !strings.Contains(c.Message, "metrics-server.kube-system.svc") {
		t.Errorf("%+v", c)
	}
}

// TestAggregationLoop: an APIService that leads to this server is refused, and not
// followed.
func TestAggregationLoop(t *testing.T) {
	a := newAggregation(t)
	must(t, ignore(client.For[*apiregistrationv1.APIService](a.api).Delete(t.Context(), "v1alpha1.wardle.example.com", metav1.DeleteOptions{})))
	a.createService(strings.TrimPrefix(a.URL(), "https://"))
	a.register(nil)
	a.awaitCondition("FailedDiscoveryCheck")
	if code, body := a.do(http.MethodGet, flundersPath+"/flunders", ""); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, body)
	}
}

// TestLocalAPIServices: what this server serves itself is never another server's.
func TestLocalAPIServices(t *testing.T) {
	a := newAggregation(t)
	a.f.answer(func(http.ResponseWriter, *http.Request) {
		t.Error("a request for a built-in kind went to another server")
	})
	services := client.For[*apiregistrationv1.APIService](a.api)
	all, err := services.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	local := map[string]bool{}
	for _, obj := range all.Items {
		if obj.Spec.Service == nil {
			local[obj.Name] = len(obj.Status.Conditions) == 1 && obj.Status.Conditions[0].Reason == "Local"
		}
	}
	for _, name := range []string{"v1.", "v1.apps", "v1.authorization.k8s.io", "v1.storagemigration.k8s.io", "v2.autoscaling"} {
		if !local[name] {
			t.Errorf("a server that has started has no APIService %s, or it is not local", name)
		}
	}
	apps, err := services.Get(t.Context(), "v1.apps", metav1.GetOptions{})
	must(t, err)
	apps.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: ownNamespace, Name: ownService}
	_, err = services.Update(t.Context(), apps, metav1.UpdateOptions{})
	must(t, err)
	testwait.Stable(t, "v1.apps says that its Service has no effect", func() (any, bool) {
		obj, err := services.Get(t.Context(), "v1.apps", metav1.GetOptions{})
		return []any{obj, err}, err == nil && len(obj.Status.Conditions) == 1 && obj.Status.Conditions[0].Reason == "Local" && strings.Contains(obj.Status.Conditions[0].Message, "no effect")
	})
	if _, body := a.do(http.MethodGet, "/apis", ""); strings.Count(body, `"name":"apps"`) != 1 {
		t.Errorf("the group apps is not listed once: %s", body)
	}
	if code, body := a.do(http.MethodGet, "/apis/apps/v1/deployments", ""); code != http.StatusOK || !strings.Contains(body, "DeploymentList") {
		t.Errorf("%d %s", code, body)
	}
	var bad bytes.Buffer
	must(t, json.NewEncoder(&bad).Encode(apiregistrationv1.APIService{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"}, ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec: apiregistrationv1.APIServiceSpec{Group: "a.example.com", Version: "v1"},
	}))
	if code, body := a.do(http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", bad.String(), "Content-Type: application/json"); code != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "spec.version+") || !strings.Contains(body, "groupPriorityMinimum") {
		t.Errorf("%d %s", code, body)
	}
}
