package customresource_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// converter is a conversion webhook between certs of v1, which have names, and
// of v1alpha1, which have one host.
type converter struct {
	*httptest.Server
	mu    sync.Mutex
	calls []int // how many objects each call converted
	spoil func(review object)
}

func startConverter(t *testing.T) *converter {
	c := &converter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *converter) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/elsewhere" {
		http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		return
	}
	var review object
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	objects := at(review, "request.objects").([]any)
	desired := at(review, "request.desiredAPIVersion")
	for _, o := range objects {
		o, spec := o.(object), at(o, "spec").(object)
		o["apiVersion"] = desired
		if desired == "example.com/v1" {
			spec["names"] = []any{spec["host"]}
			delete(spec, "host")
		} else {
			spec["host"] = at(spec, "names.0")
			delete(spec, "names")
		}
		at(o, "metadata").(object)["labels"] = object{"converted-to": strings.TrimPrefix(desired.(string), "example.com/")}
		at(o, "metadata").(object)["generation"] = 77 // not its business
	}
	uid := at(review, "request.uid")
	delete(review, "request")
	review["response"] = object{"uid": uid, "convertedObjects": objects, "result": object{"status": "Success"}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, len(objects))
	if c.spoil != nil {
		c.spoil(review)
	}
	_ = json.NewEncoder(w).Encode(review)
}

// hangs makes the webhook answer no more until the function is called, or the test ends.
func (c *converter) hangs(t *testing.T) (answer func()) {
	t.Helper()
	hanging := make(chan struct{})
	c.spoiled(func(object) { <-hanging })
	answer = sync.OnceFunc(func() {
		close(hanging)
		c.spoiled(nil)
	})
	t.Cleanup(answer)
	return answer
}

// called returns how many objects each call converted since the last time.
func (c *converter) called() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *converter) spoiled(f func(review object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoil = f
}

func (c *converter) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}))
}

const certs, oldCerts = "/apis/example.com/v1/namespaces/default/certs", "/apis/example.com/v1alpha1/namespaces/default/certs"

func cert(version, name string, spec object) object {
	return object{"apiVersion": "example.com/" + version, "kind": "Cert", "metadata": object{"name": name}, "spec": spec}
}

// defineCerts installs the definition with its webhook.
func defineCerts(c *cluster, hook *converter) {
	c.t.Helper()
	crd := load(c.t, "certs.yaml")
	client := at(crd, "spec.conversion.webhook.clientConfig").(object)
	client["url"], client["caBundle"] = hook.URL+"/convert", hook.bundle()
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
}

// TestConversionByWebhook: both versions are read and written, the webhook is
// asked for what is stored in the other version and no more, and in batches.
func TestConversionByWebhook(t *testing.T) {
	hook := startConverter(t)
	c := start(t)
	defineCerts(c, hook)
	c.do(http.MethodPost, certs, cert("v1", "a", object{"names": []any{"a.org"}})).is(http.StatusCreated)
	if calls := hook.called(); calls != nil {
		t.Errorf("the stored version was converted: %v", calls)
	}
	old := c.get(oldCerts + "/a").is(http.StatusOK).object()
	if !reflect.DeepEqual(old["spec"], object{"host": "a.org", "level": "low"}) || old["apiVersion"] != "example.com/v1alpha1" ||
		at(old, "metadata.labels.converted-to") != "v1alpha1" || at(old, "metadata.generation") != 1. {
		t.Errorf("got %v", old)
	}
	if calls := hook.called(); !reflect.DeepEqual(calls, []int{1}) {
		t.Errorf("calls %v", calls)
	}
	c.get(oldCerts + "/a")
	if calls := hook.called(); calls != nil {
		t.Errorf("the same state was converted again: %v", calls)
	}

	made := c.do(http.MethodPost, oldCerts, cert("v1alpha1", "b", object{"host": "b.org"})).is(http.StatusCreated).object()
	if made["apiVersion"] != "example.com/v1alpha1" || at(made, "spec.host") != "b.org" {
		t.Errorf("got %v", made)
	}
	if b := c.get(certs + "/b").is(http.StatusOK).object(); !reflect.DeepEqual(b["spec"], object{"names": []any{"b.org"}, "level": "low"}) {
		t.Errorf("got %v", b)
	}
	c.merge(oldCerts+"/b", object{"spec": object{"host": "c.org"}}).is(http.StatusOK)
	if b := c.get(certs + "/b").object(); at(b, "spec.names.0") != "c.org" || at(b, "metadata.generation") != 2. {
		t.Errorf("got %v", b)
	}

	for i := range 20 {
		c.do(http.MethodPost, certs, cert("v1", fmt.Sprintf("many-%02d", i), object{"names": []any{"x"}})).is(http.StatusCreated)
	}
	hook.called()
	items := c.get(oldCerts).is(http.StatusOK).object()["items"].([]any)
	if calls := hook.called(); len(items) != 22 || len(calls) != 1 || calls[0] < 20 {
		t.Errorf("%d items with calls for %v objects", len(items), calls)
	}
	watch := c.watch(oldCerts + "?watch=1")
	for range items {
		if event := watch.next(); at(event, "object.apiVersion") != "example.com/v1alpha1" {
			t.Fatalf("got %v", event)
		}
	}
	if calls := hook.called(); calls != nil {
		t.Errorf("the watch converted what the list had: %v", calls)
	}
	c.do(http.MethodPost, certs, cert("v1", "z", object{"names": []any{"z.org"}})).is(http.StatusCreated)
	if z := watch.expect("ADDED", "z"); at(z, "spec.host") != "z.org" {
		t.Errorf("got %v", z)
	}
	c.do(http.MethodDelete, oldCerts+"/z", nil).is(http.StatusOK)
	watch.expect("DELETED", "z")
}

// TestWebhooksBehindServices: a Service is found by its endpoints, and the
// webhook's certificate has to be for the Service's name.
func TestWebhooksBehindServices(t *testing.T) {
	hook := startConverter(t)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(hook.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t)
	crd := load(t, "certs.yaml")
	client := at(crd, "spec.conversion.webhook.clientConfig").(object)
	delete(client, "url")
	// The Service may have an endpoint on the loopback, as few may.
	client["service"], client["caBundle"] = object{"namespace": "kube-system", "name": "metrics-server", "path": "/convert"}, hook.bundle()
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	c.do(http.MethodPost, certs, cert("v1", "a", object{"names": []any{"a.org"}})).is(http.StatusCreated)
	c.get(oldCerts + "/a").is(http.StatusInternalServerError).says("service kube-system/metrics-server not found")

	c.do(http.MethodPost, "/api/v1/namespaces/kube-system/services", object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "metrics-server"}, "spec": object{"ports": []any{object{"port": 443}}},
	}).is(http.StatusCreated)
	c.get(oldCerts + "/a").is(http.StatusInternalServerError).says("has no endpoint that is ready")
	c.do(http.MethodPost, "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata":  object{"name": "metrics-server", "labels": object{"kubernetes.io/service-name": "metrics-server"}},
		"endpoints": []any{object{"addresses": []any{host}}}, "ports": []any{object{"name": "", "port": number}},
	}).is(http.StatusCreated)
	// httptest's certificate is for another name: that it was reached is what
	// the error says.
	c.get(oldCerts + "/a").is(http.StatusInternalServerError).says("certificate is valid for example.com").says("metrics-server.kube-system.svc")
	if calls := hook.called(); calls != nil {
		t.Errorf("called with a certificate for another name: %v", calls)
	}
}

// maxAnswer is what a webhook may answer for one object.
const maxAnswer = 4 << 20

// TestFailuresOfWebhooks: the server reports each failure, writes nothing and
// remembers nothing of it. When the webhook works again, reads work again.
func TestFailuresOfWebhooks(t *testing.T) {
	hook := startConverter(t)
	c := start(t)
	defineCerts(c, hook)
	c.do(http.MethodPost, certs, cert("v1", "a", object{"names": []any{"a.org"}})).is(http.StatusCreated)
	response := func(review object) object { return review["response"].(object) }
	first := func(review object) object { return at(review, "response.convertedObjects.0").(object) }
	for name, test := range map[string]struct {
		spoil func(review object)
		want  string
	}{
		"refusal":     {func(r object) { response(r)["result"] = object{"status": "Failure", "message": "not today"} }, "conversion webhook for example.com/v1, Kind=Cert failed: not today"},
		"silence":     {func(r object) { response(r)["result"] = object{} }, "response.result.status was '', not 'Success'"},
		"other uid":   {func(r object) { response(r)["uid"] = "x" }, "expected response.uid="},
		"no response": {func(r object) { delete(r, "response") }, "no response provided"},
		"other kind":  {func(r object) { r["kind"] = "Potato" }, "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Potato"},
		"too few":     {func(r object) { response(r)["convertedObjects"] = []any{} }, "returned 0 objects, expected 1"},
		"version":     {func(r object) { first(r)["apiVersion"] = "example.com/v9" }, `apiVersion must be "example.com/v1alpha1", and is "example.com/v9"`},
		"name":        {func(r object) { at(first(r), "metadata").(object)["name"] = "b" }, `metadata.name must be "a", and is "b"`},
		"too much":    {func(r object) { first(r)["spec"].(object)["host"] = strings.Repeat("x", maxAnswer) }, "its answer has more than"},
		"labels":      {func(r object) { at(first(r), "metadata").(object)["labels"] = object{"a": 1} }, "metadata.labels[a] must be a string"},
	} {
		hook.spoiled(test.spoil)
		got := c.get(oldCerts + "/a").is(http.StatusInternalServerError).says(test.want)
		if got.object()["reason"] != "InternalError" {
			t.Errorf("%s: %s", name, got.body)
		}
		c.get(oldCerts).is(http.StatusInternalServerError).says(test.want)
	}
	c.merge(oldCerts+"/a", object{"spec": object{"host": "new"}}).is(http.StatusInternalServerError)
	// It is not the client's fault either if what it sends cannot be stored.
	c.do(http.MethodPost, oldCerts, cert("v1alpha1", "c", object{"host": "b.org"})).is(http.StatusInternalServerError)
	if event := c.watch(oldCerts + "?watch=1").next(); event["type"] != "ERROR" || at(event, "object.code") != 500. {
		t.Errorf("a watch says %v", event)
	}
	c.get(certs + "/a").is(http.StatusOK) // nothing to convert
	hook.spoiled(nil)
	c.get(oldCerts + "/a").is(http.StatusOK).says("a.org")
	c.redefine("certs.example.com", func(crd object) {
		at(crd, "spec.conversion.webhook.clientConfig").(object)["url"] = hook.URL + "/elsewhere"
	}).is(http.StatusOK)
	c.get(oldCerts + "/a").is(http.StatusInternalServerError).says("307")

	hook.Close()
	c.redefine("certs.example.com", func(crd object) {
		at(crd, "spec.conversion.webhook.clientConfig").(object)["url"] = hook.URL + "/other"
	}).is(http.StatusOK)
	// A dry run finds out what the write would have found out.
	dead := "conversion webhook for example.com/v1alpha1, Kind=Cert failed"
	c.do(http.MethodPatch, oldCerts+"/d?dryRun=All&fieldManager=test", cert("v1alpha1", "d", object{"host": "d.org"}),
		"Content-Type: application/apply-patch+yaml").is(http.StatusInternalServerError).says(dead)
	c.do(http.MethodPost, oldCerts+"?dryRun=All", cert("v1alpha1", "d", object{"host": "d.org"})).is(http.StatusInternalServerError).says(dead)
	c.get(oldCerts + "/a").is(http.StatusInternalServerError).says("conversion webhook for example.com/v1, Kind=Cert failed").says("/other")
	// The definition can be deleted although no webhook converts its objects any
	// more.
	c.do(http.MethodDelete, definitions+"/certs.example.com", nil).is(http.StatusOK)
	c.until("certs.example.com", func(crd object) bool { return crd == nil })
}

// TestHangingWebhookHoldsNoWatch: a watch ends when its time is up, without an
// error, although the webhook has not answered.
func TestHangingWebhookHoldsNoWatch(t *testing.T) {
	hook := startConverter(t)
	c := start(t)
	defineCerts(c, hook)
	c.do(http.MethodPost, certs, cert("v1", "a", object{"names": []any{"a.org"}})).is(http.StatusCreated)
	answer := hook.hangs(t)
	if got := c.get(oldCerts + "?watch=1&timeoutSeconds=1").is(http.StatusOK); len(got.body) != 0 { //passes: the watch waits for the webhook until then
		t.Errorf("the watch says %s", got.body)
	}
	answer()
	c.get(oldCerts + "/a").is(http.StatusOK).says("a.org")
}

// TestHangingWebhookHoldsNoOtherResource: however many clients wait for a webhook
// that hangs, gets, lists and watches of other resources are answered.
func TestHangingWebhookHoldsNoOtherResource(t *testing.T) {
	hook := startConverter(t)
	c := start(t)
	defineCerts(c, hook)
	for i := range 10 {
		c.do(http.MethodPost, certs, cert("v1", fmt.Sprintf("a-%d", i), object{"names": []any{"a.org"}})).is(http.StatusCreated)
	}
	answer := hook.hangs(t)
	begun := time.Now()
	// Where readers take longer to come than the webhook is waited for, those that came first are told so.
	longerThanWaited := func(code int) bool {
		return code == http.StatusInternalServerError && time.Since(begun) > 30*time.Second //passes: it is for how long a webhook is waited for
	}
	// The server answers 800 reads at a time. They share connections: on a slow machine, 900 handshakes at
	// once would take longer than the server waits for a request.
	const connections, each = 10, 90
	answers := make(chan readAnswer, connections*each)
	for i := range connections {
		multiplexed := c.multiplexed()
		for j := range each {
			path := oldCerts
			if j%2 == 0 {
				path = fmt.Sprintf("%s/a-%d", oldCerts, i)
			}
			go func() { answers <- multiplexed.read(path) }()
		}
	}
	for range connections*each - 200 {
		select {
		case a := <-answers:
			if a.err != nil || a.code != http.StatusTooManyRequests && !longerThanWaited(a.code) {
				t.Fatalf("a reader of the old version got %d, %v", a.code, a.err)
			}
		case <-time.After(3 * time.Minute):
			t.Fatal("the readers of the old version hold all slots")
		}
	}
	c.get(certs).is(http.StatusOK)
	c.get(certs + "/a-1").is(http.StatusOK)
	pods := c.watch("/api/v1/namespaces/default/pods?watch=1")
	c.do(http.MethodPost, "/api/v1/namespaces/default/pods", object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"}, "spec": object{"containers": []any{object{"name": "c", "image": "i"}}},
	}).is(http.StatusCreated)
	pods.expect("ADDED", "p")
	c.get("/api/v1/pods").is(http.StatusOK).says(`"p"`)
	answer()
	for range 200 {
		if a := <-answers; a.err != nil || a.code != http.StatusOK && !longerThanWaited(a.code) {
			t.Errorf("a reader that waited got %d, %v", a.code, a.err)
		}
	}
}
