package differential

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// The sequences.
const (
	life         = "life"
	formatsVerb  = "formats"
	reads        = "reads"
	selections   = "selections"
	subresources = "subresources"
	pages        = "pages"
	statuses     = "statuses"
	resizes      = "resizes"
	limits       = "limits"
)

// sequences are the steps of each verb that is a sequence.
var sequences = map[string]func(o *object) []step{
	life: lifeOf, formatsVerb: formatsOf, reads: readsOf, selections: selectionsOf, subresources: subresourcesOf, pages: pagesOf,
	statuses: statusesOf, resizes: resizesOf, limits: limitsOf,
}

const thisOne = "fieldSelector=metadata.name%3D{name}"

// holder is a finalizer that nobody but the sequence removes.
const holder = "example.com/hold"

// lifeOf is the life of an object from its creation until it is gone and there again.
func lifeOf(o *object) []step {
	steps := []step{
		{name: "list before", query: thisOne},
		{name: "get before", at: "/{name}"},
		{name: "create", method: http.MethodPost, body: theBase},
		{name: "create again", method: http.MethodPost, body: theBase, while: unseenDefault(o)},
		{name: "get", at: "/{name}"},
		{name: "list", query: thisOne},
		{name: "put unchanged", method: http.MethodPut, at: "/{name}", body: theCurrent},
		{name: "put a label", method: http.MethodPut, at: "/{name}", body: labelled("put", "a")},
		{name: "put of an old version", method: http.MethodPut, at: "/{name}", body: versioned1},
		{name: "put of another uid", method: http.MethodPut, at: "/{name}", body: otherUID},
		{name: "merge a label", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: label("merged", "b")},
		{name: "merge nothing", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: constant(map[string]any{})},
		{name: "merge an old version", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: constant(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}})},
		{name: "apply a label", method: http.MethodPatch, at: "/{name}", query: "fieldManager=first", contentType: asApplyPatch, body: appliedLabel("applied", "c")},
		{name: "apply it again", method: http.MethodPatch, at: "/{name}", query: "fieldManager=first", contentType: asApplyPatch, body: appliedLabel("applied", "c")},
		{name: "apply against another", method: http.MethodPatch, at: "/{name}", query: "fieldManager=second", contentType: asApplyPatch, body: appliedLabel("applied", "d")},
		{name: "apply by force", method: http.MethodPatch, at: "/{name}", query: "fieldManager=second&force=true", contentType: asApplyPatch, body: appliedLabel("applied", "d")},
		{name: "apply less", method: http.MethodPatch, at: "/{name}", query: "fieldManager=second", contentType: asApplyPatch, body: appliedNothing},
		{name: "hold", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: finalizers(holder)},
		{name: "delete", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0"},
		{name: "get the deleted", at: "/{name}"},
		{name: "list the deleted", query: thisOne},
		{name: "delete again", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0"},
		{name: "delete as orphans", method: http.MethodDelete, at: "/{name}", query: "propagationPolicy=Orphan"},
		{name: "create the deleted", method: http.MethodPost, body: theBase},
		{name: "label the deleted", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: label("late", "e")},
		{name: "another finalizer", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: finalizers(holder, "example.com/late")},
		{name: "let go", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: finalizers()},
		{name: "get after", at: "/{name}"},
		{name: "put after", method: http.MethodPut, at: "/{name}", body: theBase},
		{name: "merge after", method: http.MethodPatch, at: "/{name}", contentType: asMergePatch, body: label("merged", "b")},
		{name: "delete after", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0"},
		{name: "apply after", method: http.MethodPatch, at: "/{name}", query: "fieldManager=first", contentType: asApplyPatch, body: theBase},
		{name: "delete of another uid", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0", body: constant(map[string]any{"preconditions": map[string]any{"uid": "other"}})},
		{name: "delete the last", method: http.MethodDelete, at: "/{name}", query: "gracePeriodSeconds=0"},
		{name: "get at last", at: "/{name}"},
		{name: "list at last", query: thisOne},
	}
	return append(steps, step{name: "watch", query: "watch=true&resourceVersion=$since&timeoutSeconds=5&" + thisOne, events: 100, untilGone: true})
}

// unseenDefault is what kube-apiserver says of a second default class of priority until its plugin has seen the first one.
func unseenDefault(o *object) string {
	if o.kind.Kind == "PriorityClass" && o.value["globalDefault"] == true {
		return "already exists"
	}
	return ""
}

func theBase(p *player) any    { return p.base }
func theCurrent(p *player) any { return p.current }

func constant(body any) func(*player) any { return func(*player) any { return body } }

func label(name, value string) func(*player) any {
	return constant(map[string]any{"metadata": map[string]any{"labels": map[string]any{name: value}}})
}

func finalizers(names ...string) func(*player) any {
	list := []any{}
	for _, name := range names {
		list = append(list, name)
	}
	return constant(map[string]any{"metadata": map[string]any{"finalizers": list}})
}

// labelled is the current object with a label more.
func labelled(name, value string) func(*player) any {
	return func(p *player) any {
		metadata, _ := p.current["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		return with(p.current, "metadata", with(metadata, "labels", with(labels, name, value)))
	}
}

func versioned1(p *player) any {
	metadata, _ := p.current["metadata"].(map[string]any)
	return with(p.current, "metadata", with(metadata, "resourceVersion", "1"))
}

func otherUID(p *player) any {
	metadata, _ := p.current["metadata"].(map[string]any)
	return with(p.current, "metadata", with(metadata, "uid", "other"))
}

// appliedNothing is an apply patch of which nothing is owned.
func appliedNothing(p *player) any {
	return map[string]any{"apiVersion": p.kind.apiVersion(), "kind": p.kind.Kind, "metadata": map[string]any{"name": nameOf(p.base)}}
}

func appliedLabel(name, value string) func(*player) any {
	return func(p *player) any {
		patch := appliedNothing(p).(map[string]any)
		patch["metadata"].(map[string]any)["labels"] = map[string]any{name: value}
		return patch
	}
}

// accepted formats, as clients ask for them.
var formats = []string{
	"", "*/*", asJSON, asYAML, asProtobuf, asCBOR, "application/*", "text/html", "text/html,*/*;q=0.8", "application/json;q=0.1,application/yaml",
	"application/json;pretty=1", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
	"application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
	"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
	"application/cbor;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=Invented;v=v1;g=meta.k8s.io", "application/json;stream=watch", "image/png", "nonsense",
}

// formatsOf sends an object in every format, and asks for it and its list in every format.
func formatsOf(o *object) []step {
	var steps []step
	encodings := []string{asYAML, asCBOR}
	if hasProtobuf(o.kind) {
		encodings = append(encodings, asProtobuf)
	}
	for _, format := range append(encodings, "application/json;charset=utf-8", "text/plain", noContentType) {
		steps = append(steps, step{name: "create as " + format, method: http.MethodPost, query: "dryRun=All", contentType: format, body: theBase})
	}
	steps = append(steps, step{name: "create", method: http.MethodPost, body: theBase})
	for _, format := range encodings {
		steps = append(steps, step{name: "put as " + format, method: http.MethodPut, at: "/{name}", contentType: format, body: labelled("put", "a")})
	}
	for _, format := range formats {
		accept := format
		if accept == "" {
			accept = " " // a header that says nothing
		}
		steps = append(steps,
			step{name: "get as " + format, at: "/{name}", accept: accept},
			step{name: "list as " + format, query: thisOne, accept: accept},
		)
	}
	for _, include := range []string{"None", "Metadata", "Object", "Invented", ""} {
		steps = append(steps, step{name: "table with " + include, at: "/{name}", query: "includeObject=" + include, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"})
	}
	for _, format := range []string{asJSON, asYAML, "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;stream=watch", "*/*", "image/png"} {
		steps = append(steps, step{name: "watch as " + format, query: "watch=true&timeoutSeconds=10&" + thisOne, accept: format, events: 1})
	}
	return steps
}

// ofPages selects the objects that pagesOf makes.
const ofPages = "labelSelector=pages%3Dx"

// pagesOf reads three objects in pages, while one goes and another comes.
func pagesOf(*object) []step {
	another := func(name string) func(*player) any {
		return func(p *player) any {
			metadata, _ := p.base["metadata"].(map[string]any)
			return with(p.base, "metadata", with(with(metadata, "name", name), "labels", map[string]any{"pages": "x"}))
		}
	}
	var steps []step
	for _, name := range []string{"example", "example-b", "example-c"} {
		steps = append(steps, step{name: "create " + name, method: http.MethodPost, body: another(name)})
	}
	for _, accept := range []string{asJSON, asYAML, "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"} {
		steps = append(steps,
			step{name: "first page as " + accept, query: "limit=1&" + ofPages, accept: accept},
			step{name: "second page as " + accept, query: "limit=1&continue=$continue&" + ofPages, accept: accept},
			step{name: "the rest as " + accept, query: "continue=$continue&" + ofPages, accept: accept},
		)
	}
	return append(steps,
		step{name: "a page", query: "limit=2&" + ofPages},
		step{name: "delete example-c", method: http.MethodDelete, at: "/example-c"},
		step{name: "create example-d", method: http.MethodPost, body: another("example-d")},
		step{name: "the page after it", query: "limit=2&continue=$continue&" + ofPages},
		step{name: "a page of old objects", query: "limit=1&resourceVersion=$since&resourceVersionMatch=Exact&" + ofPages},
		step{name: "a page from the cache", query: "limit=1&resourceVersion=0&" + ofPages},
		step{name: "a page and its match", query: "limit=1&continue=$continue&resourceVersionMatch=NotOlderThan&" + ofPages},
		step{name: "another selector", query: "limit=1&continue=$continue&labelSelector=pages"},
		step{name: "delete all, dry", method: http.MethodDelete, query: "dryRun=All&" + ofPages},
		step{name: "delete all", method: http.MethodDelete, query: ofPages},
		step{name: "list at last", query: ofPages},
	)
}

// readOptions are queries of lists.
var readOptions = []string{
	"", "resourceVersion=0", "resourceVersion=$version", "resourceVersion=x", "resourceVersion=-1", "resourceVersion=0&resourceVersionMatch=Exact",
	"resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "resourceVersion=$version&resourceVersionMatch=Exact", "resourceVersion=$version&resourceVersionMatch=NotOlderThan",
	"resourceVersion=$version&resourceVersionMatch=Invented", "resourceVersion=0&resourceVersionMatch=NotOlderThan",
	"limit=1", "limit=0", "limit=-1", "limit=x", "limit=1&resourceVersion=0", "limit=1&resourceVersionMatch=Exact", "limit=1&resourceVersionMatch=NotOlderThan",
	"limit=1&continue=x", "continue=x", "continue=", "limit=1&continue=x&resourceVersion=$version", "limit=1&continue=x&resourceVersionMatch=Exact&resourceVersion=$version",
	"labelSelector=a%3Db", "labelSelector=!a", "labelSelector=a%20in%20(b,c)", "labelSelector=a%20in%20()", "labelSelector=%3D", "labelSelector=a%3Db%3Dc", "labelSelector=a%3E1", "labelSelector=a%3Ex",
	"labelSelector=-a", "labelSelector=a%3D-", "labelSelector=a,,b", "labelSelector=,", "labelSelector=a&labelSelector=b",
	"fieldSelector=metadata.namespace%3Dother", "fieldSelector=invented%3D1", "fieldSelector=metadata.name", "fieldSelector=metadata.name%3D{name},metadata.name%3D{name}",
	"fieldSelector=metadata.name%3D{name}&fieldSelector=metadata.name%3Dother", "fieldSelector=metadata.name%3D%3D{name}", "fieldSelector=metadata.name%3D", "fieldSelector=metadata.name%3DA%2Fb",
	"sendInitialEvents=true", "sendInitialEvents=x", "allowWatchBookmarks=true", "allowWatchBookmarks=x", "timeoutSeconds=10", "timeoutSeconds=x", "timeoutSeconds=-1", "timeoutSeconds=",
	"watch=false", "watch=0", "pretty=true", "pretty=false", "pretty", "unknown=1", "shardSelector=x",
	"watch=x&limit=x",
}

// watchOptions are queries of watches.
var watchOptions = []string{
	"resourceVersion=x", "limit=1&resourceVersion=x", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=true", "sendInitialEvents=false",
	"sendInitialEvents=true&resourceVersionMatch=Exact", "sendInitialEvents=x", "continue=x&resourceVersion=x", "timeoutSeconds=x", "allowWatchBookmarks=x", "fieldSelector=invented%3D1", "labelSelector=%3D",
	"resourceVersion=0", "resourceVersion=$since", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
}

// readsOf asks for the list of an object, and the object, with every option, and with methods that
// are not for them.
func readsOf(*object) []step {
	steps := []step{{name: "create", method: http.MethodPost, body: theBase}}
	for _, query := range readOptions {
		s := step{name: "list " + query, query: query}
		if !strings.Contains(query, "fieldSelector") {
			s.query = strings.TrimPrefix(query+"&"+thisOne, "&")
		}
		steps = append(steps, s)
	}
	for _, query := range watchOptions {
		s := step{name: "watch " + query, query: "watch=true&timeoutSeconds=10&" + query, events: 1}
		if strings.Contains(query, "allowWatchBookmarks") {
			s.events++
		}
		if strings.Contains(query, "$since") { // there is none
			s.query = strings.Replace(s.query, "timeoutSeconds=10", "timeoutSeconds=1", 1)
		}
		if !strings.Contains(query, "fieldSelector") {
			s.query += "&" + thisOne
		}
		steps = append(steps, s)
	}
	for _, query := range []string{"resourceVersion=0", "resourceVersion=$version", "resourceVersion=x", "resourceVersionMatch=Exact", "pretty=true", "fieldSelector=a", "unknown=1"} {
		steps = append(steps, step{name: "get " + query, at: "/{name}", query: query})
	}
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodHead, http.MethodOptions, http.MethodTrace, "INVENTED"} {
		steps = append(steps, step{name: method + " of the list", method: method})
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodOptions, "INVENTED"} {
		steps = append(steps, step{name: method + " of one", method: method, at: "/{name}"})
	}
	for _, at := range []string{"/{name}/status", "/{name}/scale", "/{name}/invented", "/{name}/", "/A_b", "/other"} {
		steps = append(steps, step{name: "get at " + at, at: at})
	}
	return steps
}

// subresourcesOf reads and writes every subresource of an object.
func subresourcesOf(o *object) []step {
	steps := []step{{name: "create", method: http.MethodPost, body: theBase}}
	for _, sub := range ephemeralLast(o.kind.subresources) {
		if slices.Contains(nodeSubresources, sub.name) {
			continue
		}
		at := "/{name}/" + sub.name
		if slices.Contains(sub.verbs, "get") {
			steps = append(steps,
				step{name: "get " + sub.name, at: at},
				step{name: "get " + sub.name + " as a table", at: at, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"},
				step{name: "get " + sub.name + " as YAML", at: at, accept: asYAML},
			)
		}
		for _, body := range append(subresourceBodies(sub.name), rawBody("{"), []any{}, "x") {
			if slices.Contains(sub.verbs, "create") {
				steps = append(steps,
					step{name: "post " + sub.name + " dry " + literal(body), method: http.MethodPost, at: at, query: "dryRun=All", body: constant(body)},
					step{name: "post " + sub.name + " " + literal(body), method: http.MethodPost, at: at, body: constant(body)},
				)
			}
			if slices.Contains(sub.verbs, "update") {
				steps = append(steps, step{name: "put " + sub.name + " " + literal(body), method: http.MethodPut, at: at, body: constant(body)})
			}
			if !slices.Contains(sub.verbs, "patch") {
				continue
			}
			steps = append(steps,
				step{name: "merge " + sub.name + " " + literal(body), method: http.MethodPatch, at: at, contentType: asMergePatch, body: constant(body)},
				step{name: "strategic " + sub.name + " " + literal(body), method: http.MethodPatch, at: at, contentType: asStrategicPatch, body: constant(body)},
				step{name: "apply " + sub.name + " " + literal(body), method: http.MethodPatch, at: at, query: "fieldManager=x&force=true", contentType: asApplyPatch, body: constant(body)},
			)
		}
		if slices.Contains(sub.verbs, "patch") {
			steps = append(steps, step{name: "json " + sub.name, method: http.MethodPatch, at: at, contentType: asJSONPatch, body: constant([]any{map[string]any{"op": "add", "path": "/metadata/labels", "value": map[string]any{"a": "b"}}})})
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[method]; !slices.Contains(sub.verbs, verb) {
				steps = append(steps, step{name: method + " of " + sub.name, method: method, at: at})
			}
		}
	}
	return append(steps, step{name: "get at last", at: "/{name}"})
}

// ephemeralLast returns subresources with ephemeralcontainers behind the others: what that one does to the
// owners of a pod's containers, which is declared, decides on what is applied later.
func ephemeralLast(list []subresource) []subresource {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b subresource) int {
		rank := map[bool]int{true: 1}
		return rank[a.name == "ephemeralcontainers"] - rank[b.name == "ephemeralcontainers"]
	})
	return list
}

// nodeSubresources are those that a kubelet or another program behind the server answers.
var nodeSubresources = []string{"attach", "exec", "log", "portforward", "proxy"}

// subresourceBodies are what is written to a subresource.
func subresourceBodies(name string) []any {
	metadata := func(apiVersion, kind string, members map[string]any) map[string]any {
		return with(with(with(members, "apiVersion", apiVersion), "kind", kind), "metadata", map[string]any{"name": "example", "namespace": namespace})
	}
	switch name {
	case "scale":
		scale := func(spec map[string]any) any {
			return metadata("autoscaling/v1", "Scale", map[string]any{"spec": spec})
		}
		return []any{
			scale(map[string]any{"replicas": json.Number("3")}), scale(map[string]any{"replicas": json.Number("-1")}), scale(map[string]any{}), scale(map[string]any{"replicas": json.Number("3"), "unknown": "x"}),
			metadata("v1", "Pod", map[string]any{}), map[string]any{"spec": map[string]any{"replicas": json.Number("2")}},
		}
	case "eviction":
		return []any{
			metadata("policy/v1", "Eviction", map[string]any{"deleteOptions": map[string]any{"preconditions": map[string]any{"uid": "other"}}}),
			metadata("policy/v1", "Eviction", map[string]any{"deleteOptions": map[string]any{"dryRun": []any{"All"}}}),
			metadata("policy/v1beta1", "Eviction", map[string]any{"deleteOptions": map[string]any{"dryRun": []any{"All"}}}),
			metadata("policy/v1", "Eviction", map[string]any{"deleteOptions": map[string]any{"dryRun": []any{"Invented"}}}),
			metadata("policy/v1", "Eviction", map[string]any{"deleteOptions": map[string]any{"dryRun": []any{"All"}, "gracePeriodSeconds": json.Number("-1")}}),
			metadata("policy/v1", "Eviction", map[string]any{"deleteOptions": map[string]any{"dryRun": []any{"All"}, "ignoreStoreReadErrorWithClusterBreakingPotential": true}}),
			metadata("v1", "Pod", map[string]any{}), map[string]any{},
		}
	case "binding":
		binding := func(target map[string]any) any {
			return metadata("v1", "Binding", map[string]any{"target": target})
		}
		return []any{
			binding(map[string]any{}), binding(map[string]any{"kind": "Service", "name": "a"}), binding(map[string]any{"kind": "Node", "name": ""}), metadata("v1", "Pod", map[string]any{}),
			binding(map[string]any{"kind": "Node", "name": "one"}), binding(map[string]any{"kind": "Node", "name": "one"}), binding(map[string]any{"kind": "Node", "name": "two"}), map[string]any{},
		}
	case "token":
		token := func(spec map[string]any) any {
			return map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
		}
		return []any{
			token(map[string]any{}), token(map[string]any{"audiences": []any{"a"}, "expirationSeconds": json.Number("3600")}), token(map[string]any{"expirationSeconds": json.Number("1")}), token(map[string]any{"expirationSeconds": json.Number("999999999999")}),
			token(map[string]any{"boundObjectRef": map[string]any{"kind": "Pod", "apiVersion": "v1", "name": "other"}}), token(map[string]any{"boundObjectRef": map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "name": "other"}}), map[string]any{},
			metadata("v1", "Pod", map[string]any{}),
		}
	case "ephemeralcontainers":
		pod := func(list ...any) any {
			return metadata("v1", "Pod", map[string]any{"spec": map[string]any{"ephemeralContainers": list}})
		}
		return []any{
			pod(), pod(map[string]any{"name": "debug", "image": "busybox"}), pod(map[string]any{"name": "debug", "image": "busybox"}, map[string]any{"name": "debug", "image": "busybox"}), pod(map[string]any{"name": "Bad Name"}), map[string]any{},
		}
	case "resize":
		pod := func(cpu string) any {
			return metadata("v1", "Pod", map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "example", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}}})
		}
		pods := []any{pod("1"), pod("-1"), pod("x"), map[string]any{}}
		for _, spec := range []string{
			`{"containers":[{"name":"example","resources":{"requests":{"cpu":"1"}},"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]}]}`,
			`{"containers":[{"name":"other"}]}`, `{"containers":[]}`, `{"resources":{"requests":{"cpu":"3"}}}`, `{"initContainers":[{"name":"more","image":"i"}]}`,
		} {
			value, _ := parseJSON([]byte(spec))
			pods = append(pods, metadata("v1", "Pod", map[string]any{"spec": value}))
		}
		return pods
	case "approval":
		csr := func(conditions ...any) any {
			return metadata("certificates.k8s.io/v1", "CertificateSigningRequest", map[string]any{"status": map[string]any{"conditions": conditions}})
		}
		return []any{
			csr(map[string]any{"type": "Approved", "status": "True", "reason": "x", "message": "y"}), csr(map[string]any{"type": "Denied", "status": "True"}), csr(map[string]any{"type": "Approved", "status": "Unknown"}), csr(), map[string]any{},
		}
	case "status":
		return []any{map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}, "finalizers": []any{holder}}}, map[string]any{}, map[string]any{"status": map[string]any{"unknown": "x"}}, map[string]any{"status": "x"}}
	}
	return []any{map[string]any{}, map[string]any{"metadata": map[string]any{"name": "example"}}}
}
