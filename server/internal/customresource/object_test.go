package customresource_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestObjectsAreMadeToFit: what is unknown goes, what is missing is filled in,
// and what the schema leaves open stays.
func TestObjectsAreMadeToFit(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	base := func(extra object) object {
		spec := object{"color": "red"}
		for name, value := range extra {
			spec[name] = value
		}
		return spec
	}
	defaulted := object{"kind": "plain", "maybe": "x"}
	for name, test := range map[string]struct {
		spec, want object
		unknown    string // the path that Strict complains about
	}{
		"defaults":         {base(nil), object{"color": "red", "size": 1., "deep": defaulted}, ""},
		"given":            {base(object{"size": 5, "deep": object{"kind": "mine"}}), object{"color": "red", "size": 5., "deep": object{"kind": "mine", "maybe": "x"}}, ""},
		"null is absence":  {base(object{"size": nil}), object{"color": "red", "size": 1., "deep": defaulted}, ""},
		"null where it is": {base(object{"deep": object{"maybe": nil}}), object{"color": "red", "size": 1., "deep": object{"kind": "plain", "maybe": nil}}, ""},
		"unknown":          {base(object{"bogus": 1}), object{"color": "red", "size": 1., "deep": defaulted}, `unknown field "spec.bogus"`},
		"unknown in a list": {
			base(object{"ports": []any{object{"name": "a", "port": "http", "x": 1}}}),
			object{"color": "red", "size": 1., "deep": defaulted, "ports": []any{object{"name": "a", "port": "http"}}}, `unknown field "spec.ports[0].x"`,
		},
		"free":       {base(object{"free": object{"any": object{"thing": 1.}}}), object{"color": "red", "size": 1., "deep": defaulted, "free": object{"any": object{"thing": 1.}}}, ""},
		"open map":   {base(object{"labels": object{"a": "b"}}), object{"color": "red", "size": 1., "deep": defaulted, "labels": object{"a": "b"}}, ""},
		"int string": {base(object{"ports": []any{object{"name": "a", "port": 80.}}}), object{"color": "red", "size": 1., "deep": defaulted, "ports": []any{object{"name": "a", "port": 80.}}}, ""},
		"embedded": {
			base(object{"template": object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "bogus": 1}, "spec": object{"x": 1.}}}),
			object{"color": "red", "size": 1., "deep": defaulted, "template": object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"}, "spec": object{"x": 1.}}},
			`unknown field "spec.template.metadata.bogus"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t, c.url, c.client}
			body := widget(strings.ReplaceAll(name, " ", "-"), test.spec)
			warned := c.do(http.MethodPost, widgets, body).is(http.StatusCreated)
			if got := at(warned.object(), "spec"); !reflect.DeepEqual(got, any(test.want)) {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
			if got := at(c.get(widgets+"/"+strings.ReplaceAll(name, " ", "-")).object(), "spec"); !reflect.DeepEqual(got, any(test.want)) {
				t.Errorf("stored as %v\nwant %v", got, test.want)
			}
			warning := warned.header.Get("Warning")
			body["metadata"] = object{"name": "strict"}
			strict := c.do(http.MethodPost, widgets+"?fieldValidation=Strict&dryRun=All", body)
			if test.unknown == "" {
				strict.is(http.StatusCreated)
				if warning != "" {
					t.Errorf("warned: %s", warning)
				}
				return
			}
			strict.is(http.StatusBadRequest).says("strict decoding error: " + test.unknown)
			if want := strings.ReplaceAll(test.unknown, `"`, `\"`); !strings.Contains(warning, want) {
				t.Errorf("warned %q, want %q", warning, want)
			}
			if ignored := c.do(http.MethodPost, widgets+"?fieldValidation=Ignore&dryRun=All", body).is(http.StatusCreated); ignored.header.Get("Warning") != "" {
				t.Errorf("Ignore warned: %v", ignored.header)
			}
		})
	}
}

// TestNewObjectsAreChecked: each error names its path and says what upstream
// says.
func TestNewObjectsAreChecked(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	for name, test := range map[string]struct {
		spec object
		want []string
	}{
		"required": {object{}, []string{"spec.color: Required value"}},
		"enum":     {object{"color": "pink"}, []string{`spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"`}},
		"bounds":   {object{"color": "red", "size": 101}, []string{"spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100"}},
		"type":     {object{"color": "red", "on": "yes"}, []string{`spec.on: Invalid value: "string": spec.on in body must be of type boolean: "string"`}},
		"pattern":  {object{"color": "red", "serial": "A1"}, []string{`spec.serial: Invalid value: "A1": spec.serial in body should match '^[a-z]+$'`}},
		"length":   {object{"color": "red", "serial": "abcdefghi"}, []string{"spec.serial: Too long: may not be more than 8"}},
		"items":    {object{"color": "red", "tags": []any{"a", "b", "c", "d", "e"}}, []string{"spec.tags: Too many: 5: must have at most 4 items"}},
		"set":      {object{"color": "red", "tags": []any{"a", "a"}}, []string{`spec.tags[1]: Duplicate value: "a"`}},
		"map":      {object{"color": "red", "ports": []any{object{"name": "a"}, object{"name": "a"}}}, []string{`spec.ports[1]: Duplicate value: {"name":"a"}`}},
		"rule":     {object{"color": "red", "size": 5, "limit": 4}, []string{"spec.size: Forbidden: it is a little over the limit"}},
		"rules need a sound object": {
			object{"color": "pink", "size": 5, "limit": 4},
			[]string{"Unsupported value", "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"},
		},
		"embedded": {object{"color": "red", "template": object{"kind": "Pod"}}, []string{"spec.template.apiVersion: Required value"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t, c.url, c.client}
			got := c.do(http.MethodPost, widgets, widget("it", test.spec)).is(http.StatusUnprocessableEntity)
			for _, want := range test.want {
				got.says(want)
			}
			if status := got.object(); status["reason"] != "Invalid" || at(status, "details.kind") != "Widget" || at(status, "details.group") != "example.com" {
				t.Errorf("got %v", status)
			}
		})
	}
	c.do(http.MethodPost, widgets, widget("Not_A_Name", object{"color": "red"})).is(http.StatusUnprocessableEntity).says("metadata.name: Invalid value")
	c.do(http.MethodPost, widgets, object{"kind": "Other", "apiVersion": "example.com/v1"}).is(http.StatusUnprocessableEntity)
	c.do(http.MethodPost, widgets, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"x","labels":{"a":1}}}`).is(http.StatusBadRequest)
}

// TestChangesAreChecked: transition rules compare with the old state, and what
// was wrong before may stay as long as it is not touched.
func TestChangesAreChecked(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	it := widgets + "/it"
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "serial": "abc", "grown": 3, "tags": []any{"a"}})).is(http.StatusCreated)
	c.merge(it, object{"spec": object{"serial": "abd"}}).is(http.StatusUnprocessableEntity).says(`spec.serial: Invalid value: "abd": is immutable`)
	c.merge(it, object{"spec": object{"grown": 2}}).is(http.StatusUnprocessableEntity).says("never shrinks")
	c.merge(it, object{"spec": object{"grown": 4}}).is(http.StatusOK)

	c.redefine("widgets.example.com", func(crd object) {
		spec := at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec").(object)
		at(spec, "properties.color").(object)["enum"] = []any{"blue"}
		at(spec, "properties.tags.items").(object)["minLength"] = 2
		spec["x-kubernetes-validations"] = append(spec["x-kubernetes-validations"].([]any), object{"rule": "self.size != 1", "message": "not one"})
	}).is(http.StatusOK)
	c.merge(it, object{"metadata": object{"labels": object{"x": "y"}}}).is(http.StatusOK)
	c.merge(it, object{"spec": object{"on": true, "size": 2}}).is(http.StatusOK)
	c.merge(it, object{"spec": object{"on": true, "size": 1}}).is(http.StatusUnprocessableEntity).says("not one")
	c.merge(it, object{"spec": object{"color": "green"}}).is(http.StatusUnprocessableEntity).says("Unsupported value")
	c.merge(it, object{"spec": object{"tags": []any{"a", "b"}}}).is(http.StatusUnprocessableEntity).says("spec.tags")
	c.merge(it, object{"spec": object{"color": "blue", "tags": []any{"aa"}}}).is(http.StatusOK)

	// A PUT must say what it replaces, and cannot make anything.
	current := c.get(it).object()
	at(current, "metadata").(object)["resourceVersion"] = ""
	c.do(http.MethodPut, it, current).is(http.StatusUnprocessableEntity).says("must be specified for an update")
	c.do(http.MethodPatch, it, object{}, "Content-Type: application/strategic-merge-patch+json").is(http.StatusUnsupportedMediaType)
}

// TestStatusAndScale: the subresources change their part and nothing else, and
// only what is wanted counts as a new generation.
func TestStatusAndScale(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	it := widgets + "/it"
	body := widget("it", object{"color": "red", "size": 3})
	body["status"] = object{"phase": "On"}
	made := c.do(http.MethodPost, widgets, body).is(http.StatusCreated).object()
	if made["status"] != nil {
		t.Errorf("a POST brought a status: %v", made["status"])
	}
	expect := func(o object, generation, size float64, phase any) {
		t.Helper()
		if at(o, "metadata.generation") != generation || at(o, "spec.size") != size || at(o, "status.phase") != phase {
			t.Errorf("got %v, want generation %v, size %v, phase %v", o, generation, size, phase)
		}
	}
	expect(made, 1, 3, nil)
	expect(c.merge(it+"/status", object{"status": object{"phase": "On", "size": 3, "selector": "a=b"}, "spec": object{"size": 9}, "metadata": object{"labels": object{"a": "b"}}}).is(http.StatusOK).object(), 1, 3, "On")
	if labels := at(c.get(it).object(), "metadata.labels"); labels != nil {
		t.Errorf("the status brought labels: %v", labels)
	}
	expect(c.merge(it, object{"status": object{"phase": "Off"}, "spec": object{"size": 4}}).is(http.StatusOK).object(), 2, 4, "On")
	c.merge(it+"/status", object{"status": object{"phase": "Broken"}}).is(http.StatusUnprocessableEntity).says("status.phase: Unsupported value")

	scale := c.get(it + "/scale").is(http.StatusOK).object()
	if at(scale, "kind") != "Scale" || at(scale, "spec.replicas") != 4. || at(scale, "status.replicas") != 3. || at(scale, "status.selector") != "a=b" {
		t.Errorf("got %v", scale)
	}
	at(scale, "spec").(object)["replicas"] = 7
	c.do(http.MethodPut, it+"/scale", scale).is(http.StatusOK)
	expect(c.get(it).object(), 3, 7, "On")
	c.merge(it+"/scale", object{"spec": object{"replicas": 101}}).is(http.StatusUnprocessableEntity).says("should be less than or equal to 100")

	// Without the subresource a status is a field like others.
	c.define("gadgets.yaml")
	c.redefine("gadgets.example.com", func(crd object) {
		at(crd, "spec.versions.1.schema.openAPIV3Schema.properties").(object)["status"] = object{"type": "string"}
	}).is(http.StatusOK)
	gadgets := "/apis/example.com/v1/gadgets"
	c.do(http.MethodPost, gadgets, object{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": object{"name": "g"}, "status": "new"}).is(http.StatusCreated)
	changed := c.merge(gadgets+"/g", object{"status": "old"}).is(http.StatusOK).object()
	if changed["status"] != "old" || at(changed, "metadata.generation") != 2. {
		t.Errorf("got %v", changed)
	}
	c.merge(gadgets+"/g/status", object{}).is(http.StatusNotFound)
	c.get(gadgets + "/g/scale").is(http.StatusNotFound)
}

// TestScaleOfUnsaidReplicas: a custom resource that does not say how many replicas it wants can be
// scaled, and its scale be read from then on.
func TestScaleOfUnsaidReplicas(t *testing.T) {
	c := start(t)
	crd := load(t, "widgets.yaml")
	delete(at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size").(object), "default")
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	it := widgets + "/it"
	for _, tt := range []struct {
		name, contentType string
		body              any
		code              int
		want              string // of the answer, or ""
		size              any
	}{
		{"a merge patch", "application/merge-patch+json", object{"spec": object{"replicas": 2}}, 200, `"replicas":2`, 2.},
		{"a JSON patch", "application/json-patch+json", []object{{"op": "replace", "path": "/spec/replicas", "value": 2}}, 200, `"replicas":2`, 2.},
		{"a patch of nothing", "application/merge-patch+json", object{}, 400, `the spec replicas field \".spec.size\" cannot be empty`, nil},
		{"a patch to null", "application/merge-patch+json", object{"spec": object{"replicas": nil}}, 200, "", 0.},
		{"a patch to too few", "application/merge-patch+json", object{"spec": object{"replicas": -1}}, 422, "Widget.example.com", nil},
		{"a PUT", "", object{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": object{"name": "it"}, "spec": object{"replicas": 2}}, 200, `"replicas":2`, 2.},
	} {
		c.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated)
		c.get(it + "/scale").is(http.StatusInternalServerError).says(`Internal error occurred: the spec replicas field \".spec.size\" does not exist`)
		method, contentType := http.MethodPatch, tt.contentType
		if contentType == "" {
			method, contentType = http.MethodPut, "application/json"
		}
		got := c.do(method, it+"/scale", tt.body, "Content-Type: "+contentType)
		if !strings.Contains(string(got.body), tt.want) || got.code != tt.code {
			t.Errorf("%s: %d %s", tt.name, got.code, got.body)
		}
		if size := at(c.get(it).object(), "spec.size"); size != tt.size {
			t.Errorf("%s: the object wants %v, want %v", tt.name, size, tt.size)
		}
		c.do(http.MethodDelete, it, nil).is(http.StatusOK)
	}
}

// TestTables: columns are those of the definition, with their types.
func TestTables(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "tags": []any{"a", "b"}, "on": true, "ratio": 0.5})).is(http.StatusCreated)
	c.do(http.MethodPost, widgets, widget("ju", object{"color": "blue"})).is(http.StatusCreated)
	table := c.get(widgets, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io").is(http.StatusOK).object()
	var names []any
	for _, column := range table["columnDefinitions"].([]any) {
		names = append(names, at(column, "name"), at(column, "type"), at(column, "priority"))
	}
	want := []any{"Name", "string", 0., "Color", "string", 0., "Size", "integer", 0., "Tags", "string", 1., "On", "boolean", 0., "Ratio", "number", 0., "Age", "date", 0.}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got %v", names)
	}
	if got := at(table, "columnDefinitions.2.description"); got != "Custom resource definition column (in JSONPath format): .spec.size" {
		t.Errorf("got %v", got)
	}
	cells := at(table, "rows.0.cells").([]any)
	if got := cells[:6]; !reflect.DeepEqual(got, []any{"it", "red", 1., `["a","b"]`, true, .5}) {
		t.Errorf("got %v", got)
	}
	if age, ok := cells[6].(string); !ok || !strings.HasSuffix(age, "s") {
		t.Errorf("age %v", cells[6])
	}
	if got := at(table, "rows.1.cells").([]any)[3:6]; !reflect.DeepEqual(got, []any{nil, nil, nil}) {
		t.Errorf("got %v", got)
	}
	c.define("gadgets.yaml")
	plain := c.get("/apis/example.com/v1/gadgets", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io").object()
	metadata := metav1.ObjectMeta{}.SwaggerDoc() // of which kube-apiserver takes the descriptions
	if got := plain["columnDefinitions"]; !reflect.DeepEqual(got, []any{
		object{"name": "Name", "type": "string", "format": "name", "description": metadata["name"], "priority": 0.},
		object{"name": "Age", "type": "date", "format": "", "description": metadata["creationTimestamp"], "priority": 0.},
	}) {
		t.Errorf("got %v", got)
	}
}

// TestWritesThroughSeveralVersions: managers that write an object in different
// versions do not get in each other's way, whichever of them is stored. The
// store's version has to stay what it is while fields are attributed.
func TestWritesThroughSeveralVersions(t *testing.T) {
	c := start(t)
	c.define("gadgets.yaml")
	const old, now = "/apis/example.com/v1beta1/gadgets", "/apis/example.com/v1/gadgets"
	c.do(http.MethodPost, now, object{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": object{"name": "a"}, "spec": object{"port": 0}}).is(http.StatusCreated)
	port := 0.
	for range 3 {
		for path, version := range map[string]string{old: "example.com/v1beta1", now: "example.com/v1"} {
			port++
			got := c.merge(path+"/a", object{"spec": object{"port": port}}).is(http.StatusOK).object()
			if got["apiVersion"] != version || at(got, "spec.port") != port {
				t.Errorf("%s: got %v", path, got)
			}
		}
		c.redefine("gadgets.example.com", func(crd object) {
			for _, v := range at(crd, "spec.versions").([]any) {
				v.(object)["storage"] = v.(object)["storage"] != true
			}
		}).is(http.StatusOK)
	}
}

// TestApply: ownership follows the schema's lists and maps.
func TestApply(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	apply := func(manager string, spec object) answer {
		return c.do(http.MethodPatch, widgets+"/it?fieldManager="+manager, widget("it", spec), "Content-Type: application/apply-patch+yaml")
	}
	apply("one", object{"color": "red", "ports": []any{object{"name": "a", "port": 1}}, "tags": []any{"x"}}).is(http.StatusCreated)
	both := apply("two", object{"ports": []any{object{"name": "b", "port": "http"}}, "tags": []any{"y"}}).is(http.StatusOK).object()
	if got := at(both, "spec.ports"); !reflect.DeepEqual(got, []any{object{"name": "a", "port": 1.}, object{"name": "b", "port": "http"}}) {
		t.Errorf("ports %v", got)
	}
	if got := at(both, "spec.tags"); !reflect.DeepEqual(got, []any{"x", "y"}) {
		t.Errorf("tags %v", got)
	}
	apply("two", object{"color": "blue"}).is(http.StatusConflict).says(`conflict with "one": .spec.color`)
	left := apply("one", object{"color": "red"}).is(http.StatusOK).object()
	if got := at(left, "spec.ports"); !reflect.DeepEqual(got, []any{object{"name": "b", "port": "http"}}) {
		t.Errorf("what one manager gave up is still there, or what the other owns is not: %v", got)
	}
	apply("one", object{"color": "red", "bogus": 1}).is(http.StatusInternalServerError)
}
