package openapi

import (
	"net/http"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// group collects the paths of one group and version, and the models that they
// mention, in terms of version 2, from which version 3 is converted.
type group struct {
	*models
	gv    schema.GroupVersion
	root  string // "/apis/apps/v1"
	id    string
	tag   string
	paths map[string]spec.PathItem
	// custom are the paths of custom kinds, which templates make.
	custom []filledTemplate
	used   map[string]bool

	status, options, patch, event *spec.Schema // references
}

func newGroup(m *models, gv schema.GroupVersion) *group {
	g := &group{models: m, gv: gv, root: "/" + Place(gv), id: identifier(gv), tag: tagOf(gv),
		paths: make(map[string]spec.PathItem), used: make(map[string]bool)}
	g.status = g.mention(m.add(reflect.TypeFor[metav1.Status]()))
	g.options = g.mention(m.add(reflect.TypeFor[metav1.DeleteOptions]()))
	g.patch = g.mention(m.add(reflect.TypeFor[metav1.Patch]()))
	g.event = g.mention(m.add(reflect.TypeFor[metav1.WatchEvent]()))
	g.discovery()
	return g
}

// Place returns where a group and version is served, without a leading slash:
// "apis/apps/v1". It is the name of its document, too.
func Place(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// mention notes that a model is needed and returns a reference to it.
func (g *group) mention(name string) *spec.Schema {
	g.used[name] = true
	return refTo(name)
}

// discovery describes the list of the group's resources.
func (g *group) discovery() {
	list := g.mention(g.add(reflect.TypeFor[metav1.APIResourceList]()))
	op := &spec.Operation{}
	op.ID, op.Description, op.Tags = "get"+g.id+"APIResources", "get available resources", []string{g.tag}
	op.Produces, op.Consumes, op.Schemes = produced(false, false), anyType, []string{"https"}
	op.Responses = responses(list, http.StatusOK)
	g.paths[g.root+"/"] = spec.PathItem{PathItemProps: spec.PathItemProps{Get: op}}
}

// endpoint is one resource while its paths are written.
type endpoint struct {
	Endpoint
	*group
	scope        string // "Namespaced" in operation ids
	object, list *spec.Schema
	custom       bool
	common       []spec.Parameter // of every path below a namespace or not
}

// describe adds a resource and all that is below it.
func (g *group) describe(e Endpoint) error {
	if IsCustom(e.Resource) {
		return g.describeCustom(e)
	}
	list := ""
	if e.NewList != nil {
		list = g.models.list(e.Resource)
	}
	g.describeAs(e, g.models.object(e.Resource), list)
	return nil
}

// describeAs describes a resource whose kind and list are the named models. list is "" if
// there is none.
func (g *group) describeAs(e Endpoint, object, list string) {
	p := &endpoint{Endpoint: e, group: g, custom: IsCustom(e.Resource), common: []spec.Parameter{pretty}}
	p.object = g.mention(object)
	if list != "" {
		p.list = g.mention(list)
	}
	place := "/" + e.Plural
	if e.Namespaced {
		p.everywhere(place)
		place = "/namespaces/{namespace}" + place
		p.scope, p.common = "Namespaced", []spec.Parameter{namespaceInPath, pretty}
	}
	p.collection(place)
	p.single(place + "/{name}")
	for _, sub := range e.Subresources {
		p.subresource(place+"/{name}/"+sub.Name, sub)
	}
}

func (p *endpoint) set(path string, item spec.PathItemProps, parameters []spec.Parameter) {
	if item.Get == nil && item.Put == nil && item.Post == nil && item.Delete == nil && item.Patch == nil {
		return
	}
	item.Parameters = parameters
	p.paths[p.root+path] = spec.PathItem{PathItemProps: item}
}

// when makes an operation if the resource has the verb.
func (p *endpoint) when(verb string, o operation) *spec.Operation {
	if !p.offers(verb) {
		return nil
	}
	o.kind, o.custom = p.GroupVersionKind(), p.custom
	return p.operation(o)
}

var ok = []int{http.StatusOK}

func (p *endpoint) listing(id string) operation {
	what := "list"
	if p.offers(verbWatch) {
		what = "list or watch"
	}
	return operation{
		id: "list" + p.id + id, action: verbList, doc: what + " objects of kind " + p.Kind,
		parameters: slices.Concat(selectParameters, watchParameters), stream: true, codes: ok, answer: p.list,
	}
}

func (p *endpoint) watching(id, action string) operation {
	return operation{
		id: "watch" + p.id + id, action: action, doc: "watch changes to objects of kind " + p.Kind + ". Deprecated: use the watch parameter of a list.",
		parameters: slices.Concat(selectParameters, watchParameters), stream: true, codes: ok, answer: p.event, deprecated: true,
	}
}

// everywhere describes the collection over all namespaces.
func (p *endpoint) everywhere(place string) {
	p.set(place, spec.PathItemProps{Get: p.when(verbList, p.listing(p.Kind+"ForAllNamespaces"))}, p.common)
	p.set("/watch"+place, spec.PathItemProps{Get: p.when(verbWatch, p.watching(p.Kind+"ListForAllNamespaces", "watchlist"))}, p.common)
}

func (p *endpoint) collection(place string) {
	p.set(place, spec.PathItemProps{
		Get: p.when(verbList, p.listing(p.scope+p.Kind)),
		Post: p.when(verbCreate, operation{
			id: "create" + p.id + p.scope + p.Kind, action: "post", doc: "create an object of kind " + p.Kind,
			parameters: append([]spec.Parameter{objectBody(p.object)}, writeParameters...),
			codes:      []int{http.StatusOK, http.StatusCreated, http.StatusAccepted}, answer: p.object,
		}),
		Delete: p.when(verbDeleteCollection, operation{
			id: "delete" + p.id + "Collection" + p.scope + p.Kind, action: verbDeleteCollection, doc: "delete a collection of objects of kind " + p.Kind,
			parameters: slices.Concat([]spec.Parameter{deleteBody(p.options)}, deleteParameters, selectParameters),
			codes:      ok, answer: p.status,
		}),
	}, p.common)
	p.set("/watch"+place, spec.PathItemProps{Get: p.when(verbWatch, p.watching(p.scope+p.Kind+"List", "watchlist"))}, p.common)
}

func (p *endpoint) named(doc string) []spec.Parameter {
	return append([]spec.Parameter{pathParameter("name", doc)}, p.common...)
}

func (p *endpoint) single(place string) {
	deleted := p.status
	// Of namespaces, Kubernetes' document does not say that they are answered with.
	if p.Strategy.ReturnDeleted && (p.Group != "" || p.Plural != "namespaces") {
		deleted = p.object
	}
	parameters := p.named("The name of the object of kind " + p.Kind + ".")
	p.set(place, spec.PathItemProps{
		Get: p.when(verbGet, operation{
			id: "read" + p.id + p.scope + p.Kind, action: "get", doc: "read an object of kind " + p.Kind, codes: ok, answer: p.object,
		}),
		Put: p.when(verbUpdate, operation{
			id: "replace" + p.id + p.scope + p.Kind, action: "put", doc: "replace an object of kind " + p.Kind,
			parameters: append([]spec.Parameter{objectBody(p.object)}, writeParameters...),
			codes:      []int{http.StatusOK, http.StatusCreated}, answer: p.object,
		}),
		Patch: p.when(verbPatch, operation{
			id: "patch" + p.id + p.scope + p.Kind, action: "patch", doc: "change parts of an object of kind " + p.Kind,
			parameters: append([]spec.Parameter{objectBody(p.patch)}, patchParameters...), consumes: patchTypes(p.custom),
			codes: []int{http.StatusOK, http.StatusCreated}, answer: p.object,
		}),
		Delete: p.when(verbDelete, operation{
			id: "delete" + p.id + p.scope + p.Kind, action: "delete", doc: "delete an object of kind " + p.Kind,
			parameters: append([]spec.Parameter{deleteBody(p.options)}, deleteParameters...),
			codes:      []int{http.StatusOK, http.StatusAccepted}, answer: deleted,
		}),
	}, parameters)
	p.set("/watch"+place, spec.PathItemProps{Get: p.when(verbWatch, p.watching(p.scope+p.Kind, "watch"))}, parameters)
}

// subresource describes what is below an object. Its kind may be another one
// than the object's.
func (p *endpoint) subresource(place string, sub Subresource) {
	body := p.object
	if sub.Body != nil {
		name := p.add(indirect(reflect.TypeOf(sub.Body)))
		p.is(name, sub.Kind)
		body = p.mention(name)
	}
	id := p.id + p.scope + p.Kind + identifierOf(sub.Name)
	when := func(verb string, o operation) *spec.Operation {
		if !slices.Contains(sub.Verbs, verb) {
			return nil
		}
		o.kind, o.custom, o.answer = sub.Kind, p.custom && sub.Body == nil, body
		o.doc = o.doc + " " + sub.Name + " of an object of kind " + p.Kind
		return p.operation(o)
	}
	p.set(place, spec.PathItemProps{
		Get: when(verbGet, operation{id: "read" + id, action: "get", doc: "read", codes: ok}),
		Put: when(verbUpdate, operation{id: "replace" + id, action: "put", doc: "replace",
			parameters: append([]spec.Parameter{objectBody(body)}, writeParameters...), codes: []int{http.StatusOK, http.StatusCreated}}),
		Post: when(verbCreate, operation{id: "create" + id, action: "post", doc: "create",
			parameters: append([]spec.Parameter{objectBody(body)}, writeParameters...),
			codes:      []int{http.StatusOK, http.StatusCreated, http.StatusAccepted}}),
		Patch: when(verbPatch, operation{id: "patch" + id, action: "patch", doc: "change parts of",
			parameters: append([]spec.Parameter{objectBody(p.patch)}, patchParameters...),
			consumes:   patchTypes(p.custom), codes: []int{http.StatusOK, http.StatusCreated}}),
	}, p.named("The name of the object of kind "+p.Kind+"."))
}

// identifierOf returns a subresource's name as it stands in operation ids.
func identifierOf(name string) string {
	switch name {
	case "ephemeralcontainers":
		return "Ephemeralcontainers"
	}
	return string(name[0]-'a'+'A') + name[1:]
}
