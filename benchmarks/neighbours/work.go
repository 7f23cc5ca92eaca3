package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// work is what costs others something.
type work struct {
	name string
	// prepare makes what do needs, before the first phase.
	prepare func(context.Context, *plan, *tested.Server) error
	// do returns when the work is over.
	do func(context.Context, *plan, *tested.Server, *load.Conn) error
}

var works = []work{
	{"definitions", nil, changeDefinitions},
	{"namespace", fillNamespace, deleteNamespace},
	{"garbage", fillGarbage, deleteOwner},
	{"webhook", nil, readThroughHangingWebhook},
}

func names() (names []string) {
	for _, w := range works {
		names = append(names, w.name)
	}
	return names
}

const crowd = "/api/v1/namespaces/" + crowdNamespace + "/configmaps"

func fillNamespace(ctx context.Context, p *plan, t *tested.Server) error {
	return p.fill(ctx, t, "")
}

func fillGarbage(ctx context.Context, p *plan, t *tested.Server) error {
	if err := t.Change(ctx, []load.Request{post(crowd, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}}`)}); err != nil {
		return err
	}
	return t.With(ctx, func(c *load.Conn) error {
		var owner struct {
			Metadata struct{ UID string }
		}
		if err := get(ctx, c, crowd+"/owner", &owner); err != nil {
			return err
		}
		return p.fill(ctx, t, fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]`, owner.Metadata.UID))
	})
}

// fill creates the objects.
func (p *plan) fill(ctx context.Context, t *tested.Server, metadata string) error {
	requests := make([]load.Request, p.objects)
	for n := range requests {
		requests[n] = post(crowd, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"crowd-%d","labels":{"app":"crowd"}%s},"data":{"padding":%q}}`, n, metadata, strings.Repeat("x", 300)))
	}
	return t.Change(ctx, requests)
}

// deleteNamespace returns when the namespace and all in it are gone.
func deleteNamespace(ctx context.Context, _ *plan, _ *tested.Server, c *load.Conn) error {
	const path = "/api/v1/namespaces/" + crowdNamespace
	if err := c.Do(ctx, load.Request{Method: http.MethodDelete, Path: path}).Check(0); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		answer := c.Do(ctx, load.Request{Path: path})
		return answer.Status == http.StatusNotFound, answer.Err
	})
}

// deleteOwner returns when the objects of the owner are gone.
func deleteOwner(ctx context.Context, _ *plan, _ *tested.Server, c *load.Conn) error {
	if err := c.Do(ctx, load.Request{Method: http.MethodDelete, Path: crowd + "/owner"}).Check(0); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		var list struct{ Items []json.RawMessage }
		err := get(ctx, c, crowd+"?limit=1&labelSelector=app%3Dcrowd", &list)
		return len(list.Items) == 0, err
	})
}

// changesPerSecond is how often a definition is created or changed.
const changesPerSecond = 10

// changeDefinitions creates a definition and changes its schema, again and again.
func changeDefinitions(ctx context.Context, p *plan, _ *tested.Server, c *load.Conn) error {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	tick := time.NewTicker(time.Second / changesPerSecond)
	defer tick.Stop()
	for n, end := 0, time.Now().Add(p.least); time.Now().Before(end); n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		name := fmt.Sprintf("things%d", n/2)
		request := post(definitions, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.example.com"},`+
			`"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":%[1]q,"singular":%[1]q,"kind":"Thing%[2]d","listKind":"Thing%[2]dList"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[3]s}}]}}`, name, n/2, schema))
		if n%2 == 1 {
			request = load.Request{
				Method: http.MethodPatch, Path: definitions + "/" + name + ".example.com", Header: []hpack.HeaderField{{Name: "content-type", Value: "application/json-patch+json"}},
				Body: []byte(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/more","value":{"type":"string"}}]`),
			}
		}
		if err := c.Do(ctx, request).Check(0); err != nil {
			return err
		}
	}
	return nil
}

// schema is one of usual size: 60 fields, some with rules.
var schema = func() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"spec":{"type":"object","properties":{`)
	for n := range 30 {
		fmt.Fprintf(&b, `"field%[1]d":{"type":"string","maxLength":100,"description":"What the field is for, in a sentence of usual length.","x-kubernetes-validations":[{"rule":"self != 'no%[1]d'"}]},`, n)
		fmt.Fprintf(&b, `"list%d":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"integer"}}}},`, n)
	}
	return strings.TrimSuffix(b.String(), ",") + `}}}}`
}()

func post(path, body string) load.Request {
	return load.Request{Method: http.MethodPost, Path: path, Body: []byte(body), Header: []hpack.HeaderField{{Name: "content-type", Value: "application/json"}}}
}

func get(ctx context.Context, c *load.Conn, path string, into any) error {
	answer := c.Do(ctx, load.Request{Path: path, Header: []hpack.HeaderField{{Name: "accept", Value: "application/json"}}})
	if err := answer.Check(0); err != nil {
		return err
	}
	return json.Unmarshal(answer.Body, into)
}

// until returns when done does, which it asks twice a second.
func until(ctx context.Context, done func() (bool, error)) error {
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if err := tested.Pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}
