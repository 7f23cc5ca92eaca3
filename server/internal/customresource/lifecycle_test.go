package customresource_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestServedAtOnce: the answer to the POST of a definition says that what it
// defines is there: resource, discovery, OpenAPI.
func TestServedAtOnce(t *testing.T) {
	c := start(t)
	c.get(widgets).is(http.StatusNotFound)
	c.define("widgets.yaml")
	list := c.get(widgets).is(http.StatusOK).object()
	if list["kind"] != "WidgetList" || list["apiVersion"] != "example.com/v1" || len(list["items"].([]any)) != 0 {
		t.Errorf("got %v", list)
	}
	crd := c.until("widgets.example.com", func(crd object) bool { return condition(crd, "Established") != "" })
	if condition(crd, "Established") != "InitialNamesAccepted True" || condition(crd, "NamesAccepted") != "NoConflicts True" ||
		at(crd, "status.acceptedNames.listKind") != "WidgetList" || at(crd, "status.storedVersions.0") != "v1" {
		t.Errorf("status %v", crd["status"])
	}
	if at(crd, "spec.conversion.strategy") != "None" {
		t.Errorf("not defaulted: %v", crd["spec"])
	}
	discovered := c.get("/apis/example.com/v1").is(http.StatusOK).object()["resources"].([]any)
	names := map[any]any{}
	for _, r := range discovered {
		names[at(r, "name")] = r
	}
	r := names["widgets"]
	if at(r, "singularName") != "widget" || at(r, "shortNames.0") != "wd" || at(r, "categories.1") != "parts" || at(r, "namespaced") != true {
		t.Errorf("discovered %v", r)
	}
	if names["widgets/status"] == nil || at(names["widgets/scale"], "group") != "autoscaling" {
		t.Errorf("discovered %v", discovered)
	}
	c.get("/apis/example.com").is(http.StatusOK)
	c.get("/openapi/v3/apis/example.com/v1").is(http.StatusOK).says("Widget is a thing for tests.").says("What it looks like.")
	aggregated := c.get("/apis", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	aggregated.is(http.StatusOK).says("widgets")
	c.get("/readyz").is(http.StatusOK)
	c.get("/metrics").is(http.StatusOK).says(`levelwire_cache_objects{group="example.com",resource="widgets"} 0`)
}

// TestConflictsOfNames: the second definition gets the names that are left. It
// gets the first one's names when the first one gives them up.
func TestConflictsOfNames(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	rival := load(t, "gadgets.yaml")
	rival["spec"].(object)["names"] = object{"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList", "shortNames": []any{"wd", "gd"}}
	c.do(http.MethodPost, definitions, rival).is(http.StatusCreated)
	crd := c.until("gadgets.example.com", func(crd object) bool { return condition(crd, "NamesAccepted") != "" })
	if condition(crd, "NamesAccepted") != "KindConflict False" || condition(crd, "Established") != "NotAccepted False" {
		t.Errorf("status %v", crd["status"])
	}
	if at(crd, "status.acceptedNames.kind") != "" || at(crd, "status.acceptedNames.plural") != "gadgets" {
		t.Errorf("accepted %v", at(crd, "status.acceptedNames"))
	}
	c.get("/apis/example.com/v1/gadgets").is(http.StatusNotFound)
	c.get("/apis/example.com/v1/widgets").is(http.StatusOK)

	c.do(http.MethodDelete, definitions+"/widgets.example.com", nil).is(http.StatusOK)
	crd = c.until("gadgets.example.com", func(crd object) bool { return condition(crd, "Established") == "InitialNamesAccepted True" })
	if at(crd, "status.acceptedNames.kind") != "Widget" || at(crd, "status.acceptedNames.shortNames.0") != "wd" {
		t.Errorf("accepted %v", at(crd, "status.acceptedNames"))
	}
	c.get("/apis/example.com/v1/gadgets").is(http.StatusOK)
}

// TestDefinitionsAreChecked: with upstream's words.
func TestDefinitionsAreChecked(t *testing.T) {
	c := start(t)
	c.define("gadgets.yaml")
	version := func(crd object) object { return at(crd, "spec.versions.0").(object) }
	schema := func(crd object) object { return at(crd, "spec.versions.0.schema.openAPIV3Schema").(object) }
	for name, test := range map[string]struct {
		change func(crd object)
		want   string
	}{
		"name":           {func(crd object) { crd["metadata"] = object{"name": "x.example.com"} }, `must be spec.names.plural+"."+spec.group`},
		"group":          {func(crd object) { crd["spec"].(object)["group"] = "example" }, "should be a domain with at least one dot"},
		"scope":          {func(crd object) { crd["spec"].(object)["scope"] = "Galaxy" }, "spec.scope: Unsupported value"},
		"no storage":     {func(crd object) { version(crd)["storage"] = false }, "must have exactly one version marked as storage version"},
		"no schema":      {func(crd object) { delete(version(crd), "schema") }, "spec.versions[0].schema.openAPIV3Schema: Required value"},
		"not structural": {func(crd object) { schema(crd)["properties"] = object{"a": object{}} }, "openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"},
		"bad default":    {func(crd object) { schema(crd)["properties"] = object{"a": object{"type": "integer", "default": "x"}} }, "must be of type integer"},
		"bad rule": {func(crd object) {
			schema(crd)["x-kubernetes-validations"] = []any{object{"rule": "self.nothing > 1"}}
		}, "undefined field 'nothing'"},
		"bad column": {func(crd object) {
			version(crd)["additionalPrinterColumns"] = []any{object{"name": "X", "type": "colour", "jsonPath": ".x"}}
		}, "must be one of boolean,date,integer,number,string"},
		"bad field": {func(crd object) { version(crd)["selectableFields"] = []any{object{"jsonPath": ".spec.none"}} }, "selectableFields[0].jsonPath: Invalid value"},
		"unapproved": {func(crd object) {
			crd["spec"].(object)["group"], crd["metadata"] = "x.k8s.io", object{"name": "widgets.x.k8s.io"}
		}, "protected groups must have approval annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t, c.url, c.client}
			crd := load(t, "widgets.yaml")
			test.change(crd)
			c.do(http.MethodPost, definitions, crd).is(http.StatusUnprocessableEntity).says(test.want)
		})
	}
	c.redefine("gadgets.example.com", func(crd object) { crd["spec"].(object)["scope"] = "Namespaced" }).
		is(http.StatusUnprocessableEntity).says("spec.scope: Invalid value: \"Namespaced\": field is immutable")
	c.redefine("gadgets.example.com", func(crd object) { at(crd, "spec.versions.0").(object)["storage"] = true }).
		is(http.StatusUnprocessableEntity).says("must have exactly one version marked as storage version")
	c.redefine("gadgets.example.com", func(crd object) {
		at(crd, "spec").(object)["versions"] = at(crd, "spec.versions").([]any)[:1]
		at(crd, "spec.versions.0").(object)["storage"] = true
	}).is(http.StatusUnprocessableEntity).says("missing from spec.versions")
}

// TestDeprecatedVersions: every request is answered with a warning.
func TestDeprecatedVersions(t *testing.T) {
	c := start(t)
	c.define("gadgets.yaml")
	got := c.get("/apis/example.com/v1beta1/gadgets").is(http.StatusOK).header.Get("Warning")
	if want := `299 - "example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := c.get("/apis/example.com/v1/gadgets").is(http.StatusOK).header.Get("Warning"); got != "" {
		t.Errorf("got %s", got)
	}
	c.redefine("gadgets.example.com", func(crd object) { at(crd, "spec.versions.0").(object)["deprecationWarning"] = "go away" }).is(http.StatusOK)
	if got := c.get("/apis/example.com/v1beta1/gadgets").header.Get("Warning"); got != `299 - "go away"` {
		t.Errorf("got %s", got)
	}
}

// TestVersionsShowOneObject: with strategy None each version shows the same
// object under its own name and by its own schema.
func TestVersionsShowOneObject(t *testing.T) {
	c := start(t)
	c.define("gadgets.yaml")
	c.redefine("gadgets.example.com", func(crd object) {
		properties(crd, "0")["level"] = object{"type": "string", "default": "low"}
	}).is(http.StatusOK)
	const gadgets, beta = "/apis/example.com/v1/gadgets", "/apis/example.com/v1beta1/gadgets"
	gadget := func(version, name string, spec object) object {
		return object{"apiVersion": "example.com/" + version, "kind": "Gadget", "metadata": object{"name": name}, "spec": spec}
	}
	made := c.do(http.MethodPost, beta, gadget("v1beta1", "x", object{"host": "h", "level": "high"})).is(http.StatusCreated).object()
	if made["apiVersion"] != "example.com/v1beta1" {
		t.Errorf("got %v", made)
	}
	v1 := c.get(gadgets + "/x").is(http.StatusOK).object()
	if v1["apiVersion"] != "example.com/v1" || at(v1, "spec.level") != nil || at(v1, "spec.host") != "h" || at(v1, "metadata.uid") != at(made, "metadata.uid") {
		t.Errorf("got %v", v1)
	}
	c.do(http.MethodPost, beta, gadget("v1", "y", nil)).is(http.StatusBadRequest)
	items := c.get(beta).object()["items"].([]any)
	if len(items) != 1 || at(items[0], "apiVersion") != "example.com/v1beta1" {
		t.Errorf("got %v", items)
	}
	c.merge(beta+"/x", object{"spec": object{"port": 1}}).is(http.StatusOK)
	if got := at(c.get(gadgets+"/x").object(), "spec.port"); got != 1. {
		t.Errorf("got %v", got)
	}
	kinds := slices.Collect(func(yield func(string) bool) {
		for _, path := range []string{gadgets, beta} {
			o := c.get(path+"/x", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").object()
			if !yield(o["kind"].(string) + " " + at(o, "metadata.name").(string)) {
				return
			}
		}
	})
	if strings.Join(kinds, ",") != "PartialObjectMetadata x,PartialObjectMetadata x" {
		t.Errorf("got %v", kinds)
	}
}
