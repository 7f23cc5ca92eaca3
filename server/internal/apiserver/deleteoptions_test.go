package apiserver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeleteOptionsInTheQuery: each is read as kube-apiserver reads it.
func TestDeleteOptionsInTheQuery(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	var made corev1.ConfigMap
	c.send(200, "GET", configMaps+"/a", "").into(t, &made)
	for _, test := range []struct {
		query string
		code  int
		says  string
	}{
		{"uid=other", 409, `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record`},
		{"resourceVersion=1", 409, `the ResourceVersion in the precondition (1) does not match the ResourceVersion in record`},
		{"uid=" + string(made.UID) + "&resourceVersion=" + made.ResourceVersion, 200, ""},
		{"gracePeriodSeconds=", 400, `strconv.ParseInt: parsing "": invalid syntax`},
		{"gracePeriodSeconds=soon", 400, `strconv.ParseInt: parsing "soon": invalid syntax`},
		{"orphanDependents=true&propagationPolicy=Orphan", 422, "cannot be both set"},
		{"ignoreStoreReadErrorWithClusterBreakingPotential=true", 409, "unsafe deletion is not allowed because the object is decodable from storage"},
		{"ignoreStoreReadErrorWithClusterBreakingPotential=true&gracePeriodSeconds=0", 422, "cannot be set together with .gracePeriodSeconds"},
	} {
		if got := c.send(test.code, "DELETE", configMaps+"/a?dryRun=All&"+test.query, ""); !strings.Contains(string(got.body), strings.ReplaceAll(test.says, `"`, `\"`)) {
			t.Errorf("%s: %s", test.query, got.body)
		}
	}
	const unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
	if got := c.send(422, "DELETE", configMaps+"?"+unsafe, ""); !strings.Contains(string(got.body), "is not allowed with DELETECOLLECTION") {
		t.Errorf("%s", got.body)
	}
	c.send(422, "DELETE", configMaps+"?labelSelector=none&propagationPolicy=Up", "")
	c.send(200, "GET", configMaps+"/a", "")
}

// TestPreconditionsOfEvents: an Event is one of the core group, whichever of its two groups it is
// deleted in.
func TestPreconditionsOfEvents(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`)
	got := c.send(409, "DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/e?uid=other", "")
	if !strings.Contains(string(got.body), `Operation cannot be fulfilled on Event \"e\"`) || strings.Contains(string(got.body), "events.k8s.io") {
		t.Errorf("%s", got.body)
	}
}

// TestDeleteOptionsInTheBody: the query of a request with a body has no options but a dry run.
func TestDeleteOptionsInTheBody(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	for body, says := range map[string]string{
		`{"kind":"Pod"}`: `no kind \"Pod\" is registered for version \"meta.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"`,
		`{"kind":"Eviction","apiVersion":"policy/v1"}`: `no kind \"Eviction\" is registered for version \"policy/v1\" in scheme \"pkg/runtime/scheme.go:111\"`,
		`{"kind":"Pod","gracePeriodSeconds":"1"}`:      `no kind \"Pod\" is registered for version \"meta.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"`,
		`{"gracePeriodSeconds":"1"}`:                   `"message":"json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"`,
	} {
		if got := c.send(400, "DELETE", configMaps+"/a", body, jsonBody); !strings.Contains(string(got.body), says) {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	c.send(200, "DELETE", configMaps+"/a?uid=other&propagationPolicy=Up", `{"dryRun":["All"]}`, jsonBody)
	c.send(200, "GET", configMaps+"/a", "")
	c.send(200, "DELETE", configMaps+"/a?dryRun=All", `{}`, jsonBody)
	c.send(200, "GET", configMaps+"/a", "")
	c.send(200, "DELETE", configMaps+"/a?uid=other", `{}`, jsonBody)
	c.send(404, "GET", configMaps+"/a", "")
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	widgets     = `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
)

// TestPreconditionsByKind: namespaces and definitions have other words than all other kinds.
func TestPreconditionsByKind(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", definitions, widgets)
	for object, says := range map[string]string{
		"/api/v1/namespaces/default":         `Operation cannot be fulfilled on namespaces "default": Precondition failed: UID in precondition: other, UID in object meta: `,
		definitions + "/widgets.example.com": `Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "widgets.example.com": precondition failed: UID in precondition: other, UID in object meta: `,
	} {
		if got := c.send(409, "DELETE", object+"?uid=other", ""); !strings.Contains(string(got.body), strings.ReplaceAll(says, `"`, `\"`)) {
			t.Errorf("%s: %s", object, got.body)
		}
	}
}

// TestFinalizersOfFirstDeletes: what a DELETE says of the dependents of a namespace, and of a definition, is another
// thing than for all other kinds, until it is being deleted.
func TestFinalizersOfFirstDeletes(t *testing.T) {
	const cleanup = "customresourcecleanup.apiextensions.k8s.io"
	c := newWritable(t)
	c.send(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"plain"}}`)
	c.send(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"waiting","finalizers":["foregroundDeletion","example.com/a"]}}`)
	c.send(201, "POST", definitions, widgets)
	remove := func(path string) (finalizers, grace string) {
		var got metav1.PartialObjectMetadata
		code := 200
		if strings.Contains(path, "orphanDependents=false") {
			code = 202
		}
		c.send(code, "DELETE", path, "").into(t, &got)
		return strings.Join(got.Finalizers, " "), fmt.Sprint(got.DeletionGracePeriodSeconds != nil)
	}
	for _, test := range []struct{ object, query, finalizers string }{
		{"/api/v1/namespaces/plain", "", ""},
		{"/api/v1/namespaces/plain", "orphanDependents=false", "foregroundDeletion"},
		{"/api/v1/namespaces/plain", "orphanDependents=true", "orphan"},
		{"/api/v1/namespaces/plain", "propagationPolicy=Foreground", "foregroundDeletion"},
		{"/api/v1/namespaces/plain", "propagationPolicy=Background", ""},
		{"/api/v1/namespaces/waiting", "", "foregroundDeletion example.com/a"},
		{"/api/v1/namespaces/waiting", "orphanDependents=false", "foregroundDeletion example.com/a"},
		{"/api/v1/namespaces/waiting", "propagationPolicy=Background", "example.com/a"},
		{"/api/v1/namespaces/waiting", "propagationPolicy=Orphan", "example.com/a orphan"},
		{definitions + "/widgets.example.com", "", cleanup},
		{definitions + "/widgets.example.com", "propagationPolicy=Orphan", cleanup},
		{definitions + "/widgets.example.com", "orphanDependents=true", cleanup},
	} {
		if got, grace := remove(test.object + "?dryRun=All&" + test.query); got != test.finalizers || grace != "false" {
			t.Errorf("%s %s: finalizers %q, a grace period: %s", test.object, test.query, got, grace)
		}
	}
	for _, test := range []struct{ object, query, finalizers, grace string }{
		{"/api/v1/namespaces/waiting", "", "foregroundDeletion example.com/a", "false"},
		{"/api/v1/namespaces/waiting", "propagationPolicy=Orphan", "foregroundDeletion example.com/a", "false"},
		{definitions + "/widgets.example.com", "propagationPolicy=Orphan", cleanup, "false"},
		{definitions + "/widgets.example.com", "propagationPolicy=Orphan", cleanup + " orphan", "true"},
	} {
		if got, grace := remove(test.object + "?" + test.query); got != test.finalizers || grace != test.grace {
			t.Errorf("%s %s: finalizers %q, a grace period: %s", test.object, test.query, got, grace)
		}
	}
}

// TestDeletesOfEmptiedNamespaces: the first DELETE of a namespace only says that it ends, even if nothing
// keeps it; the next one removes it, or a write.
func TestDeletesOfEmptiedNamespaces(t *testing.T) {
	const all = "/api/v1/namespaces"
	c := newWritable(t)
	remove := func(name, query string) (phase corev1.NamespacePhase, ends bool) {
		var got corev1.Namespace
		c.send(200, "DELETE", all+"/"+name+query, "").into(t, &got)
		return got.Status.Phase, got.DeletionTimestamp != nil
	}
	for _, name := range []string{"deleted", "written"} {
		c.send(201, "POST", all, `{"metadata":{"name":"`+name+`"}}`)
		c.send(200, "PUT", all+"/"+name+"/finalize", `{"metadata":{"name":"`+name+`"}}`)
		for _, query := range []string{"?dryRun=All", ""} {
			if phase, ends := remove(name, query); phase != corev1.NamespaceTerminating || !ends {
				t.Errorf("%s%s is %s, ends: %v", name, query, phase, ends)
			}
			c.send(200, "GET", all+"/"+name, "")
		}
	}
	remove("deleted", "?dryRun=All")
	c.send(200, "GET", all+"/deleted", "")
	remove("deleted", "")
	c.send(404, "GET", all+"/deleted", "")
	c.send(200, "PATCH", all+"/written", `{"metadata":{"labels":{"a":"b"}}}`, merge)
	c.send(404, "GET", all+"/written", "")
}

// TestEventsHaveNoDependents: a DELETE does not keep an Event for the garbage collector, whatever it says.
func TestEventsHaveNoDependents(t *testing.T) {
	const events = "/api/v1/namespaces/default/events"
	c := newWritable(t)
	for _, query := range []string{"propagationPolicy=Orphan", "propagationPolicy=Foreground", "orphanDependents=true", ""} {
		c.send(201, "POST", events, `{"metadata":{"name":"a","finalizers":["orphan"]},"involvedObject":{"namespace":"default"}}`)
		c.send(200, "DELETE", events+"/a?"+query, "")
		c.send(404, "GET", events+"/a", "")
	}
}

// TestListOptionsOfDeletedCollections are those of a list, and are looked at before those of the delete.
func TestListOptionsOfDeletedCollections(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
	var old corev1.ConfigMapList
	c.send(200, "GET", configMaps, "").into(t, &old)
	c.send(201, "POST", configMaps, `{"metadata":{"name":"b"}}`)
	for _, test := range []struct {
		query string
		code  int
		says  string
	}{
		{"resourceVersion=x", 400, `invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`},
		{"resourceVersion=-1", 400, `invalid resource version: resourceVersion: Invalid value: "-1": `},
		{"resourceVersionMatch=Exact", 422, "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{"resourceVersionMatch=Exact&continue=x&propagationPolicy=Up", 422, "resourceVersionMatch is forbidden when continue is provided]"},
		{"resourceVersionMatch=Exact&resourceVersion=0", 422, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`},
		{"resourceVersionMatch=Some&resourceVersion=1", 422, `resourceVersionMatch: Unsupported value: "Some": supported values: "Exact", "NotOlderThan", ""`},
		{"sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"},
		{"continue=x", 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"},
		{"limit=x", 400, `strconv.ParseInt: parsing "x": invalid syntax`},
		{"limit=", 400, `strconv.ParseInt: parsing "": invalid syntax`},
		{"timeoutSeconds=", 400, `strconv.ParseInt: parsing "": invalid syntax`},
		{"limit=-1", 200, `"name":"b"`},
		{"limit=0", 200, `"name":"b"`},
		{"limit=1", 200, `"continue"`},
		{"limit=-1&resourceVersion=" + old.ResourceVersion, 200, `"name":"b"`},
		{"propagationPolicy=Up", 422, "DeleteOptions"},
		{"resourceVersion=" + old.ResourceVersion, 200, `"name":"a"`},
		{"resourceVersion=" + old.ResourceVersion + "&resourceVersionMatch=NotOlderThan", 200, `"name":"b"`},
		{"resourceVersion=0", 200, `"name":"a"`},
	} {
		body := ""
		if test.code == 200 {
			body = `{"dryRun":["All"]}` // without which the version is a precondition, too
		}
		got := c.send(test.code, "DELETE", configMaps+"?dryRun=All&fieldSelector=metadata.name!=kube-root-ca.crt&"+test.query, body)
		says := test.says
		if test.code != 200 {
			says = strings.ReplaceAll(says, `"`, `\"`)
		}
		if !strings.Contains(string(got.body), says) {
			t.Errorf("%s: %s", test.query, got.body)
		}
	}
	c.send(200, "DELETE", configMaps+"?resourceVersion="+old.ResourceVersion, `{}`)
	c.send(404, "GET", configMaps+"/a", "")
	c.send(200, "GET", configMaps+"/b", "")
}

// TestDeletedJobsWarnOfTheirPods, unless the request says what becomes of them.
func TestDeletedJobsWarnOfTheirPods(t *testing.T) {
	c := newWritable(t)
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	c.send(201, "POST", jobs, `{"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}`)
	for query, warns := range map[string]bool{
		"/a?dryRun=All": true, "?dryRun=All": true, "/a?dryRun=All&propagationPolicy=Orphan": false, "/a?dryRun=All&orphanDependents=true": false,
		// What is refused is told so, too, once the options themselves are right.
		"/none": true, "/a?uid=other": true, "?resourceVersion=x": true, "?continue=x": true,
		"/a?propagationPolicy=Up": false, "?propagationPolicy=Up": false, "?resourceVersionMatch=Exact": false, "?fieldSelector=x=y": false,
		"/a?ignoreStoreReadErrorWithClusterBreakingPotential=true": false, "?ignoreStoreReadErrorWithClusterBreakingPotential=true": false,
	} {
		got := c.do("DELETE", jobs+query, "").header.Values("Warning")
		if warned := len(got) == 1 && strings.Contains(got[0], "child pods are preserved by default when jobs are deleted"); warned != warns || len(got) > 1 {
			t.Errorf("%s: warnings %q", query, got)
		}
	}
}
