package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/storage"
)

const csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// csrWith is a request with a key of this test's.
func csrWith(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "me"}}, key)
	must(t, err)
	encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	return `{"metadata":{"name":"me"},"spec":{"signerName":"example.com/mine","usages":["client auth"],"request":"` + encoded + `"}}`
}

// write is one way to change something. The zero code is 200.
type write struct {
	name, method, path, body string
	header                   string
	code                     int
	// lenient: the body is no object whose fields are checked.
	lenient bool
}

// everyWrite is every verb and subresource, in an order in which each still
// finds what it changes.
func everyWrite() []write {
	pod, web := pods+"/a", deployments+"/web"
	approval := `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}}`
	return []write{
		{name: "create", method: "POST", path: configMaps, body: `{"metadata":{"name":"new"}}`, code: 201},
		{name: "create a service", method: "POST", path: "/api/v1/namespaces/default/services", code: 201,
			body: `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`},
		{name: "create a namespace", method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"other"}}`, code: 201},
		{name: "update", method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"a"},"data":{"k":"1"}}`},
		{name: "create by update", method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", body: `{"metadata":{"name":"l"}}`, code: 201},
		{name: "merge patch", method: "PATCH", path: configMaps + "/a", body: `{"data":{"k":"2"}}`, header: merge},
		{name: "strategic patch", method: "PATCH", path: configMaps + "/a", body: `{"data":{"k":"3"}}`, header: strategic},
		{name: "JSON patch", method: "PATCH", path: configMaps + "/a", body: `[{"op":"replace","path":"/data/k","value":"4"}]`, header: operation},
		{name: "apply", method: "PATCH", path: configMaps + "/a?fieldManager=m&force=true", header: "Content-Type: application/apply-patch+yaml",
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"5"}}`},
		{name: "apply something new", method: "PATCH", path: configMaps + "/applied?fieldManager=m", header: "Content-Type: application/apply-patch+yaml", code: 201,
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}`},
		{name: "update status", method: "PUT", path: web + "/status", body: `{"metadata":{"name":"web"},"status":{"replicas":1}}`},
		{name: "patch status", method: "PATCH", path: web + "/status", body: `{"status":{"replicas":2}}`, header: merge},
		{name: "update scale", method: "PUT", path: web + "/scale", body: `{"metadata":{"name":"web","namespace":"default"},"spec":{"replicas":3}}`},
		{name: "patch scale", method: "PATCH", path: web + "/scale", body: `{"spec":{"replicas":4}}`, header: merge},
		{name: "ephemeral containers", method: "PATCH", path: pod + "/ephemeralcontainers", header: strategic,
			body: `{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}`},
		{name: "resize", method: "PATCH", path: pod + "/resize", header: strategic,
			body: `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}`},
		{name: "label a pod that is debugged", method: "PATCH", path: pod, body: `{"metadata":{"labels":{"a":"b"}}}`, header: merge},
		{name: "bind", method: "POST", path: pod + "/binding", body: `{"metadata":{"name":"a"},"target":{"kind":"Node","name":"n"}}`, code: 201},
		{name: "evict", method: "POST", path: pod + "/eviction", body: `{"metadata":{"name":"a"}}`, code: 201},
		{name: "approve", method: "PATCH", path: csrs + "/me/approval", body: approval, header: merge},
		{name: "delete", method: "DELETE", path: configMaps + "/a"},
		{name: "delete, asked in the body", method: "DELETE", path: configMaps + "/b", body: `{"kind":"DeleteOptions","apiVersion":"v1"}`, lenient: true},
		{name: "delete a collection", method: "DELETE", path: configMaps},
		{name: "delete a namespace", method: "DELETE", path: "/api/v1/namespaces/team"},
		{name: "finalize", method: "PUT", path: "/api/v1/namespaces/team/finalize", body: `{"metadata":{"name":"team"},"spec":{"finalizers":[]}}`},
	}
}

func (w write) with(option string) string {
	if strings.Contains(w.path, "?") {
		return w.path + "&" + option
	}
	return w.path + "?" + option
}

// revision is the store's: it moves with every write of anything.
func (c *cluster) revision() storage.Revision {
	c.t.Helper()
	page, err := c.store.List(context.Background(), "/registry/none/", storage.ListOptions{})
	must(c.t, err)
	return page.Revision
}

func newWriteTargets(t *testing.T) *cluster {
	t.Helper()
	c := newWritable(t)
	for _, name := range []string{"a", "b", "c"} {
		c.send(201, "POST", configMaps, `{"metadata":{"name":"`+name+`"},"data":{"k":"0"}}`)
	}
	c.send(201, "POST", deployments, deploymentBody)
	c.send(201, "POST", pods, strings.Replace(podBody("a"), `"image":"i"`, `"image":"i","resources":{"requests":{"cpu":"1"}}`, 1))
	c.send(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"team"}}`)
	c.send(201, "POST", csrs, csrWith(t))
	return c
}

// TestDryRunChangesNothing: each write answers the same with dryRun=All and
// changes nothing, until it is sent without, which changes something.
func TestDryRunChangesNothing(t *testing.T) {
	c := newWriteTargets(t)
	before := c.revision()
	for _, w := range everyWrite() {
		if w.name == "finalize" || w.name == "label a pod that is debugged" {
			continue // what a write before it has to have done is not done in a dry run
		}
		c.send(w.status(), w.method, w.with("dryRun=All"), w.body, w.headers()...)
		if now := c.revision(); now != before {
			t.Fatalf("a dry run of %s has written revision %d", w.name, now)
		}
	}
	for _, w := range everyWrite() {
		if w.name == "finalize" || w.name == "label a pod that is debugged" {
			at := c.revision()
			c.send(w.status(), w.method, w.with("dryRun=All"), w.body, w.headers()...)
			if now := c.revision(); now != at {
				t.Fatalf("a dry run of %s has written revision %d", w.name, now)
			}
		}
		at := c.revision()
		c.send(w.status(), w.method, w.path, w.body, w.headers()...)
		if c.revision() == at {
			t.Errorf("%s writes nothing at all", w.name)
		}
	}
}

// TestFieldValidationOfEveryWrite: an unknown field is refused if that is asked
// for, and otherwise named in a warning, or passed over.
func TestFieldValidationOfEveryWrite(t *testing.T) {
	c := newWriteTargets(t)
	for _, w := range everyWrite() {
		if w.body == "" || w.lenient || w.method == "DELETE" || w.name == "finalize" || w.name == "label a pod that is debugged" {
			continue
		}
		body := strings.Replace(w.body, "{", `{"unheardOf":1,`, 1)
		if w.header == operation {
			body = strings.Replace(w.body, "]", `,{"op":"add","path":"/unheardOf","value":1}]`, 1)
		}
		if got := c.do(w.method, w.with("dryRun=All&fieldValidation=Strict"), body, w.headers()...); got.code < 400 || !strings.Contains(string(got.body), "unheardOf") {
			t.Errorf("%s, strictly: %d %s", w.name, got.code, got.body)
		}
		if strings.HasPrefix(w.name, "apply") {
			continue // what is applied must fit, whatever is asked for
		}
		for option, warns := range map[string]bool{"Warn": true, "Ignore": false} {
			got := c.do(w.method, w.with("dryRun=All&fieldValidation="+option), body, w.headers()...)
			if got.code != w.status() || strings.Contains(got.header.Get("Warning"), "unheardOf") != warns {
				t.Errorf("%s, %s: %d, warning %q: %s", w.name, option, got.code, got.header.Get("Warning"), got.body)
			}
		}
	}
}

func (w write) status() int {
	if w.code == 0 {
		return 200
	}
	return w.code
}

func (w write) headers() []string {
	if w.header == "" {
		return nil
	}
	return []string{w.header}
}
