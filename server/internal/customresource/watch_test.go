package customresource_test

import (
	"net/http"
	"slices"
	"testing"
)

func properties(crd object, version string) object {
	return at(crd, "spec.versions."+version+".schema.openAPIV3Schema.properties.spec.properties").(object)
}

// TestWatchesOutliveChangesOfTheSchema: one stream goes on through changes of
// schema, columns, versions, selectable fields and storage version. Nothing is
// missed, nothing comes twice, and objects look as the definition says now.
func TestWatchesOutliveChangesOfTheSchema(t *testing.T) {
	c := start(t)
	c.define("gadgets.yaml")
	const gadgets, beta = "/apis/example.com/v1/gadgets", "/apis/example.com/v1beta1/gadgets"
	n := 0
	post := func(name string, spec object) {
		t.Helper()
		c.do(http.MethodPost, gadgets, object{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": object{"name": name}, "spec": spec}).is(http.StatusCreated)
		n++
	}
	post("old", object{"host": "h", "port": 1})
	begin := at(c.get(gadgets).object(), "metadata.resourceVersion").(string)
	watch, table := c.watch(gadgets+"?watch=1&resourceVersion="+begin), c.watch(gadgets+"?watch=1&resourceVersion="+begin, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	other := c.watch(beta + "?watch=1&resourceVersion=" + begin)
	version := begin
	expect := func(kind, name string) object {
		t.Helper()
		o := watch.expect(kind, name)
		now := at(o, "metadata.resourceVersion").(string)
		if len(now) < len(version) || len(now) == len(version) && now <= version {
			t.Errorf("%s %s has version %s after %s", kind, name, now, version)
		}
		version = now
		return o
	}
	change := func(f func(crd object)) {
		t.Helper()
		c.redefine("gadgets.example.com", f).is(http.StatusOK)
	}

	post("a", object{})
	expect("ADDED", "a")
	if row := table.next(); len(at(row, "object.columnDefinitions").([]any)) != 2 {
		t.Errorf("got %v", row)
	}
	other.expect("ADDED", "a")

	change(func(crd object) {
		properties(crd, "1")["mode"] = object{"type": "string", "default": "fast"}
		delete(properties(crd, "1"), "port")
	})
	post("b", object{})
	if b := expect("ADDED", "b"); at(b, "spec.mode") != "fast" {
		t.Errorf("without the new default: %v", b)
	}
	other.expect("ADDED", "b")
	if row := table.next(); at(row, "object.rows.0.cells.0") != "b" {
		t.Errorf("got %v", row)
	}
	old := c.get(gadgets + "/old").object()
	if at(old, "spec.mode") != "fast" || at(old, "spec.port") != nil || at(old, "spec.host") != "h" {
		t.Errorf("an object from before is shown as %v", old)
	}
	if again := c.get(gadgets + "/old").object(); at(again, "metadata.resourceVersion") != at(old, "metadata.resourceVersion") {
		t.Errorf("looking at it has changed it: %v", again)
	}

	change(func(crd object) {
		at(crd, "spec.versions.1").(object)["additionalPrinterColumns"] = []any{object{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}}
		at(crd, "spec.versions.1").(object)["selectableFields"] = []any{object{"jsonPath": ".spec.host"}}
	})
	post("c", object{"host": "new"})
	expect("ADDED", "c")
	other.expect("ADDED", "c")
	if row := table.next(); at(row, "object.columnDefinitions.1.name") != "Mode" || at(row, "object.rows.0.cells.1") != "fast" {
		t.Errorf("after a change of the columns: %v", row)
	}
	// Objects that were there before are found by the new field as well, and
	// so is their history.
	var found []any
	for _, item := range c.get(gadgets + "?fieldSelector=spec.host%3Dh").is(http.StatusOK).object()["items"].([]any) {
		found = append(found, at(item, "metadata.name"))
	}
	if !slices.Equal(found, []any{"old"}) {
		t.Errorf("by the new field: %v", found)
	}
	selected := c.watch(gadgets + "?watch=1&fieldSelector=spec.host%3Dh&resourceVersion=" + version)
	c.merge(gadgets+"/a", object{"spec": object{"host": "h"}}).is(http.StatusOK)
	expect("MODIFIED", "a")
	selected.expect("ADDED", "a")
	c.merge(gadgets+"/old", object{"spec": object{"host": "g"}}).is(http.StatusOK)
	expect("MODIFIED", "old")
	selected.expect("DELETED", "old")

	// Another storage version, and one that is not served any more.
	change(func(crd object) {
		at(crd, "spec.versions.1").(object)["storage"] = false
		at(crd, "spec").(object)["versions"] = append(at(crd, "spec.versions").([]any), object{
			"name": "v2", "served": true, "storage": true,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	})
	post("d", object{"host": "stored as v2"})
	if d := expect("ADDED", "d"); d["apiVersion"] != "example.com/v1" {
		t.Errorf("got %v", d)
	}
	if d := c.get("/apis/example.com/v2/gadgets/d").is(http.StatusOK).object(); d["apiVersion"] != "example.com/v2" || at(d, "spec.host") != "stored as v2" {
		t.Errorf("got %v", d)
	}
	change(func(crd object) { at(crd, "spec.versions.0").(object)["served"] = false })
	for event := other.next(); event != nil; event = other.next() { // an ordinary end, no error
		if event["type"] == "ERROR" {
			t.Errorf("got %v", event)
		}
	}
	c.get(beta).is(http.StatusNotFound)
	post("e", object{})
	expect("ADDED", "e")
	if got := len(c.get(gadgets).object()["items"].([]any)); got != n {
		t.Errorf("%d objects, want %d", got, n)
	}
	crd := c.get(definitions + "/gadgets.example.com").object()
	if got := at(crd, "status.storedVersions").([]any); !slices.Equal(got, []any{"v1", "v2"}) {
		t.Errorf("stored versions %v", got)
	}
}

// TestTheEndOfADefinition: its objects are deleted, watches see each go and
// then end; finalizers are waited for, and nothing new is let in.
func TestTheEndOfADefinition(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	held := widget("held", object{"color": "red"})
	held["metadata"].(object)["finalizers"] = []any{"example.com/hold"}
	c.do(http.MethodPost, widgets, held).is(http.StatusCreated)
	c.do(http.MethodPost, widgets, widget("free", object{"color": "red"})).is(http.StatusCreated)
	watch := c.watch(widgets + "?watch=1&resourceVersion=" + at(c.get(widgets).object(), "metadata.resourceVersion").(string))

	c.do(http.MethodDelete, definitions+"/widgets.example.com", nil).is(http.StatusOK)
	c.until("widgets.example.com", func(crd object) bool { return condition(crd, "Terminating") == "InstanceDeletionInProgress True" })
	c.do(http.MethodPost, widgets, widget("late", object{"color": "red"})).is(http.StatusForbidden).
		says("create not allowed while custom resource definition is terminating")
	seen := map[string]bool{}
	for range 2 {
		event := watch.next()
		seen[event["type"].(string)+" "+at(event, "object.metadata.name").(string)] = true
	}
	if !seen["DELETED free"] || !seen["MODIFIED held"] {
		t.Errorf("saw %v", seen)
	}
	c.get(widgets + "/held").is(http.StatusOK)
	c.merge(widgets+"/held", object{"metadata": object{"finalizers": nil}}).is(http.StatusOK)
	watch.expect("DELETED", "held")
	if event := watch.next(); event != nil {
		t.Errorf("after the end: %v", event)
	}
	c.until("widgets.example.com", func(crd object) bool { return crd == nil })
	c.get(widgets).is(http.StatusNotFound)

	c.define("widgets.yaml")
	if items := c.get(widgets).is(http.StatusOK).object()["items"].([]any); len(items) != 0 {
		t.Errorf("defined anew, with %v", items)
	}
}
