package customresource_test

import (
	"net/http"
	"slices"
	"testing"
)

// TestNoNewObjectsAtTheEnd: from the answer to its DELETE on, a definition says
// that it is terminating, and takes no new objects.
func TestNoNewObjectsAtTheEnd(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	kept := widget("kept", object{"color": "red"})
	kept["metadata"].(object)["finalizers"] = []any{"example.com/keep"}
	c.do(http.MethodPost, widgets, kept).is(http.StatusCreated)
	deleted := c.do(http.MethodDelete, definitions+"/widgets.example.com", nil).is(http.StatusOK).object()
	if got := condition(deleted, "Terminating"); got != "InstanceDeletionPending True" {
		t.Errorf("the answer to the DELETE says %q", got)
	}
	for _, refused := range []answer{
		c.do(http.MethodPost, widgets, widget("new", object{"color": "red"})),
		c.do(http.MethodPatch, widgets+"/applied?fieldManager=x", widget("applied", object{"color": "red"}), "Content-Type: application/apply-patch+yaml"),
	} {
		status := refused.is(http.StatusForbidden).says("create not allowed while custom resource definition is terminating").object()
		if status["reason"] != "Forbidden" || at(status, "details.kind") != "widgets" {
			t.Errorf("got %v", status)
		}
	}
	c.merge(widgets+"/kept", object{"metadata": object{"finalizers": nil}}).is(http.StatusOK)
	c.until("widgets.example.com", func(crd object) bool { return crd == nil })
}

// TestStatusThatDoesNotFit: a client can write a status that lists a version which the definition does
// not have. Every update of the definition is refused from then on; deleted, it goes all the same.
func TestStatusThatDoesNotFit(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	c.until("widgets.example.com", func(crd object) bool { return condition(crd, "Established") == "InitialNamesAccepted True" })
	const widgetsDefinition = definitions + "/widgets.example.com"
	c.merge(widgetsDefinition+"/status", object{"status": object{"storedVersions": []any{"v9"}}}).is(http.StatusOK)
	c.merge(widgetsDefinition, object{"metadata": object{"labels": object{"a": "b"}}}).is(http.StatusUnprocessableEntity).says("missing from spec.versions")
	c.do(http.MethodDelete, widgetsDefinition, nil).is(http.StatusOK)
	c.until("widgets.example.com", func(crd object) bool { return crd == nil })
}

// TestRequestsThatDoNotFit: paths and media types that a definition does not
// offer are refused with the codes of kube-apiserver.
func TestRequestsThatDoNotFit(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated)
	const all = "/apis/example.com/v1/widgets"
	c.get(all).is(http.StatusOK)
	c.do(http.MethodPost, all, widget("x", object{"color": "red"})).is(http.StatusNotFound)
	c.do(http.MethodDelete, all, nil).is(http.StatusNotFound)
	for _, path := range []string{"/it", "/it/status", "/it/scale"} {
		c.do(http.MethodPatch, widgets+path, object{"spec": object{"size": 3}}, "Content-Type: application/strategic-merge-patch+json").
			is(http.StatusUnsupportedMediaType).
			says("accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
	}
}

// TestNamesAreCheckedFirst: names, and prefixes of names, of new objects, before the rest of the metadata and
// the schema.
func TestNamesAreCheckedFirst(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	wrong := widget("It", object{"color": 1})
	wrong["metadata"].(object)["generateName"] = "It_"
	wrong["metadata"].(object)["labels"] = object{"a": "?"}
	refused := c.do(http.MethodPost, widgets, wrong).is(http.StatusUnprocessableEntity).object()
	var fields []string
	for _, cause := range at(refused, "details.causes").([]any) {
		fields = append(fields, cause.(object)["field"].(string))
	}
	if want := []string{"metadata.generateName", "metadata.name", "metadata.labels", "spec.color"}; !slices.Equal(fields[:min(len(fields), 4)], want) {
		t.Errorf("mistakes in %q, not %q", fields, want)
	}
	named := widget("it", object{"color": "red"})
	named["metadata"].(object)["generateName"] = "It_"
	c.do(http.MethodPost, widgets, named).is(http.StatusUnprocessableEntity).says("metadata.generateName: Invalid value")
	delete(named["metadata"].(object), "generateName")
	c.do(http.MethodPost, widgets, named).is(http.StatusCreated)
	c.merge(widgets+"/it", object{"metadata": object{"generateName": "It_"}}).is(http.StatusOK)
}

// TestSubresourcesInOrder: discovery lists status before scale.
func TestSubresourcesInOrder(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	list := c.get("/apis/example.com/v1").is(http.StatusOK).object()
	for i, want := range []string{"widgets", "widgets/status", "widgets/scale"} {
		if got := at(list["resources"].([]any)[i], "name"); got != want {
			t.Errorf("resource %d is %v, want %s", i, got, want)
		}
	}
	c.get("/openapi/v3/apis/example.com/v1").is(http.StatusOK).says(`"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]`)
}
