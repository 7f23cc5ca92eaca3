package customresource_test

import (
	"maps"
	"net/http"
	"testing"
)

const (
	mergePatch = "Content-Type: application/merge-patch+json"
	jsonPatch  = "Content-Type: application/json-patch+json"
	applyPatch = "Content-Type: application/apply-patch+yaml"
)

// TestKindsThatDoNotFit: an object of another kind is invalid, in whatever way it is written; one of another
// version is not read at all, unless a patch makes it so. Of an update of the status only the status counts.
func TestKindsThatDoNotFit(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	const (
		it, itsStatus = widgets + "/it", widgets + "/it/status"

		noKind  = "Object 'Kind' is missing in '{"
		invalid = `Widget.example.com "it" is invalid: apiVersion: Invalid value: `
	)
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated)
	version := at(c.get(it).is(http.StatusOK).object(), "metadata.resourceVersion")
	// with is the object as it is sent, with other members; nil takes one away.
	with := func(name string, members object) object {
		body := widget(name, object{"color": "red"})
		maps.Copy(body, members)
		maps.DeleteFunc(body, func(_ string, value any) bool { return value == nil })
		return body
	}
	read := func(name string, members object) object {
		body := with(name, members)
		body["metadata"].(object)["resourceVersion"] = version
		return body
	}
	operation := func(path string, value any) []object {
		if value == nil {
			return []object{{"op": "remove", "path": path}}
		}
		return []object{{"op": "replace", "path": path, "value": value}}
	}
	dryRun := func(path string) string { return path + "?dryRun=All" }
	for _, tt := range []struct {
		name, method, path string
		headers            string
		body               any
		code               int
		says               string
	}{
		{"create, another kind", "POST", widgets, "", with("new", object{"kind": "Gadget"}), 422, `Gadget.example.com "new" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"create, a list", "POST", widgets, "", with("new", object{"kind": "WidgetList"}), 422, `WidgetList.example.com "new" is invalid: kind: Invalid value: "WidgetList": must be Widget`},
		{"create, another kind in YAML", "POST", widgets, "Content-Type: application/yaml", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: new}}", 422, `Gadget.example.com "new" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"create, another kind, no name", "POST", widgets, "", object{"kind": "Gadget", "apiVersion": "example.com/v1"}, 422, `Gadget.example.com "" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"create, another kind and version", "POST", widgets, "", with("new", object{"kind": "Gadget", "apiVersion": "example.com/v2"}), 400, "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"},
		{"create, another version", "POST", widgets, "", with("new", object{"apiVersion": "example.com/v2"}), 400, "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"},
		{"create, another group", "POST", widgets, "", with("new", object{"apiVersion": "example.org/v1"}), 400, "the API version in the data (example.org/v1) does not match the expected API version (example.com/v1)"},
		{"create, a built-in kind", "POST", widgets, "", with("new", object{"kind": "ConfigMap", "apiVersion": "v1"}), 400, "the API version in the data (v1) does not match the expected API version (example.com/v1)"},
		{"create, no version", "POST", widgets, "", with("new", object{"apiVersion": nil}), 400, "the API version in the data () does not match the expected API version (example.com/v1)"},
		{"create, none that is one", "POST", widgets, "", with("new", object{"apiVersion": "a/b/c"}), 400, "the object provided is unrecognized (must be of type Widget): unexpected GroupVersion string: a/b/c"},
		{"create, no kind", "POST", widgets, "", with("new", object{"kind": nil}), 400, "the object provided is unrecognized (must be of type Widget): " + noKind},
		{"create, no kind, unknown fields ignored", "POST", widgets + "?fieldValidation=Ignore", "", with("new", object{"kind": nil}), 400, `Widget in version "v1" cannot be handled as a Widget: ` + noKind},
		{"create, neither", "POST", widgets, "", with("new", object{"kind": nil, "apiVersion": nil}), 400, "the object provided is unrecognized (must be of type Widget): " + noKind},
		{"create, another kind with malformed metadata", "POST", widgets, "", with("new", object{"kind": "Gadget", "metadata": object{"labels": object{"a": 1}}}), 400, `Gadget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number`},

		{"update, another kind", "PUT", it, "", read("it", object{"kind": "Gadget"}), 422, `Gadget.example.com "it" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"update, another kind and name", "PUT", it, "", read("that", object{"kind": "Gadget"}), 400, "the name of the object (that) does not match the name on the URL (it)"},
		{"update of nothing, another kind", "PUT", widgets + "/none", "", read("none", object{"kind": "Gadget"}), 404, `widgets.example.com "none" not found`},
		{"update from nowhere, another kind", "PUT", it, "", with("it", object{"kind": "Gadget"}), 422, `widgets.example.com "it" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		{"update, another version", "PUT", it, "", read("it", object{"apiVersion": "example.com/v2"}), 400, "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"},
		{"update, another group", "PUT", it, "", read("it", object{"apiVersion": "example.org/v1"}), 400, "the API version in the data (example.org/v1) does not match the expected API version (example.com/v1)"},
		{"update, no version", "PUT", it, "", read("it", object{"apiVersion": nil}), 400, "the API version in the data () does not match the expected API version (example.com/v1)"},
		{"update, no kind", "PUT", it, "", read("it", object{"kind": nil}), 400, "the object provided is unrecognized (must be of type Widget): " + noKind},

		{"status, another kind", "PUT", dryRun(itsStatus), "", read("it", object{"kind": "Gadget", "status": object{"phase": "On", "odd": 1}}), 200, `"kind":"Widget"`},
		{"status, another version", "PUT", itsStatus, "", read("it", object{"apiVersion": "example.com/v2"}), 400, "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"},
		{"status, no version", "PUT", itsStatus, "", read("it", object{"apiVersion": nil}), 400, "the API version in the data () does not match the expected API version (example.com/v1)"},
		{"status, no kind", "PUT", itsStatus, "", read("it", object{"kind": nil}), 400, "the object provided is unrecognized (must be of type Widget): " + noKind},

		{"merge patch, another kind", "PATCH", it, mergePatch, object{"kind": "Gadget"}, 422, `Gadget.example.com "it" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"merge patch, another version", "PATCH", it, mergePatch, object{"apiVersion": "example.com/v2"}, 422, invalid + `"example.com/v2": must be example.com/v1`},
		{"merge patch, another group", "PATCH", it, mergePatch, object{"apiVersion": "example.org/v1"}, 422, `Widget.example.org "it" is invalid: apiVersion: Invalid value: "example.org/v1": must be example.com/v1`},
		{"merge patch, both", "PATCH", it, mergePatch, object{"kind": "Gadget", "apiVersion": "v1"}, 422, `Gadget "it" is invalid: [kind: Invalid value: "Gadget": must be Widget, apiVersion: Invalid value: "v1": must be example.com/v1]`},
		{"merge patch, no kind", "PATCH", it, mergePatch, object{"kind": nil}, 422, noKind},
		{"merge patch, no version", "PATCH", it, mergePatch, object{"apiVersion": nil}, 422, `Widget "it" is invalid: apiVersion: Invalid value: "": must be example.com/v1`},
		{"merge patch, none that is one", "PATCH", it, mergePatch, object{"apiVersion": "a/b/c"}, 422, "unexpected GroupVersion string: a/b/c"},
		{"merge patch of nothing, another kind", "PATCH", widgets + "/none", mergePatch, object{"kind": "Gadget"}, 404, `widgets.example.com "none" not found`},

		{"JSON patch, another kind", "PATCH", it, jsonPatch, operation("/kind", "Gadget"), 422, `Gadget.example.com "it" is invalid: kind: Invalid value: "Gadget": must be Widget`},
		{"JSON patch, another version", "PATCH", it, jsonPatch, operation("/apiVersion", "example.com/v2"), 422, invalid + `"example.com/v2": must be example.com/v1`},
		{"JSON patch, no kind", "PATCH", it, jsonPatch, operation("/kind", nil), 422, noKind},
		{"JSON patch, no version", "PATCH", it, jsonPatch, operation("/apiVersion", nil), 422, `Widget "it" is invalid: apiVersion: Invalid value: "": must be example.com/v1`},

		{"merge patch of the status, another kind", "PATCH", dryRun(itsStatus), mergePatch, object{"kind": "Gadget", "status": object{"phase": "On"}}, 200, `"kind":"Widget"`},
		{"merge patch of the status, another version", "PATCH", dryRun(itsStatus), mergePatch, object{"apiVersion": "example.com/v2", "status": object{"phase": "On"}}, 200, `"apiVersion":"example.com/v1"`},
		{"merge patch of the status, no kind", "PATCH", itsStatus, mergePatch, object{"kind": nil}, 422, noKind},
		{"merge patch of the status, no version", "PATCH", itsStatus, mergePatch, object{"apiVersion": nil}, 422, `Widget "it" is invalid: apiVersion: Invalid value: "": must be example.com/v1`},
		{"JSON patch of the status, another kind", "PATCH", dryRun(itsStatus), jsonPatch, operation("/kind", "Gadget"), 200, `"kind":"Widget"`},
		{"JSON patch of the status, no kind", "PATCH", itsStatus, jsonPatch, operation("/kind", nil), 422, noKind},

		{"apply, another kind", "PATCH", it + "?fieldManager=a", applyPatch, with("it", object{"kind": "Gadget"}), 400, "invalid object type: example.com/v1, Kind=Gadget"},
		{"apply, another version", "PATCH", it + "?fieldManager=a", applyPatch, with("it", object{"apiVersion": "example.com/v2"}), 400, "invalid object type: example.com/v2, Kind=Widget"},
		{"apply, another group", "PATCH", it + "?fieldManager=a", applyPatch, with("it", object{"apiVersion": "example.org/v1"}), 400, "invalid object type: example.org/v1, Kind=Widget"},
		{"apply, no kind", "PATCH", it + "?fieldManager=a", applyPatch, with("it", object{"kind": nil}), 400, "invalid object type: example.com/v1, Kind="},
		{"apply, no version", "PATCH", it + "?fieldManager=a", applyPatch, with("it", object{"apiVersion": nil}), 400, "invalid object type: /, Kind=Widget"},
		{"apply, a new object of another kind", "PATCH", widgets + "/new?fieldManager=a", applyPatch, with("new", object{"kind": "Gadget"}), 400, "invalid object type: example.com/v1, Kind=Gadget"},
		{"apply of the status, another kind", "PATCH", itsStatus + "?fieldManager=a", applyPatch, with("it", object{"kind": "Gadget"}), 400, "invalid object type: example.com/v1, Kind=Gadget"},
		{"apply of the status, no version", "PATCH", itsStatus + "?fieldManager=a", applyPatch, with("it", object{"apiVersion": nil}), 400, "invalid object type: /, Kind=Widget"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var headers []string
			if tt.headers != "" {
				headers = append(headers, tt.headers)
			}
			c := &cluster{t, c.url, c.client}
			c.do(tt.method, tt.path, tt.body, headers...).is(tt.code).says(tt.says)
		})
	}
	if now := at(c.get(it).is(http.StatusOK).object(), "metadata.resourceVersion"); now != version {
		t.Errorf("the object was written: version %v, before %v", now, version)
	}
	c.get(widgets + "/new").is(http.StatusNotFound)
}

// TestStatusOfAnotherKindIsPruned: what of it the schema does not know is not stored.
func TestStatusOfAnotherKindIsPruned(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated)
	wrote := c.merge(widgets+"/it/status", object{"kind": "Gadget", "spec": object{"color": "blue"}, "status": object{"phase": "On", "odd": 1}}).is(http.StatusOK).object()
	for when, got := range map[string]object{"written": wrote, "read": c.get(widgets + "/it").is(http.StatusOK).object()} {
		if at(got, "kind") != "Widget" || at(got, "spec.color") != "red" || at(got, "status.phase") != "On" || at(got, "status.odd") != nil {
			t.Errorf("%s: %v", when, got)
		}
	}
}

// TestKindsOfGeneratedNames: the refusal names the object by the name that it would have got.
func TestKindsOfGeneratedNames(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	body := object{"kind": "Gadget", "apiVersion": "example.com/v1", "metadata": object{"generateName": "it-"}}
	c.do(http.MethodPost, widgets, body).is(http.StatusUnprocessableEntity).says(`Gadget.example.com "it-`).says(`" is invalid: kind: Invalid value: "Gadget": must be Widget`)
}
